// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Shows what a dataset is, of any format that the library reads: its fields and their types, how much there
// is, a few rows, a contact sheet of its images, and the C++ expression that reads it.

#include "inspect_main.hpp"

#include <penstock/codec/json.hpp>
#include <penstock/codec/png_encoder.hpp>

int main(int argc, char** argv) { return inspection::run("inspect", argc, argv); }
