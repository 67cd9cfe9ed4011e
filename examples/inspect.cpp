// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Shows what a dataset is, of any format that the library reads: its fields and their types, how much there
// is, a few rows, a contact sheet of its images, and the C++ expression that reads it.

#include "inspect_main.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/source/energon.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/tfrecord.hpp>

int main(int argc, char** argv) { return inspection::run("inspect", argc, argv); }
