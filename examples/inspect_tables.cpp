// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `inspect` with Parquet files and tables of Delta Lake and Iceberg, which need Arrow C++.

#include "inspect_main.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/codec/unpack_gzip.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/codec/webp.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/energon.hpp>
#include <penstock/source/iceberg.hpp>
#include <penstock/source/idx_gz.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/source/tfrecord.hpp>

int main(int argc, char** argv) {
  return inspection::run("inspect_tables", argc, argv, penstock::parquet_format{}, penstock::delta_format{},
                         penstock::iceberg_format{});
}
