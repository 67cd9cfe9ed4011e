// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// `inspect` with Parquet files and tables of Delta Lake and Iceberg, which need Arrow C++.

#include "inspect_main.hpp"

#include <penstock/codec/json.hpp>
#include <penstock/codec/png_encoder.hpp>
#include <penstock/source/delta.hpp>
#include <penstock/source/iceberg.hpp>
#include <penstock/source/parquet.hpp>

int main(int argc, char** argv) {
  return inspection::run("inspect_tables", argc, argv, penstock::parquet_format{}, penstock::delta_format{},
                         penstock::iceberg_format{});
}
