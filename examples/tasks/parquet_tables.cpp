// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/parquet_tables.md: columns of numbers from Parquet files.

#include <penstock/codec/arrow_value.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/parquet.hpp>
#include <penstock/source/where.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    const auto loader =
        ps::parquet(argc > 1 ? argv[1] : "table") |
        ps::where<"label">(ps::less_than(5)) |  // row groups whose statistics exclude it are not read
        ps::decode<ps::field<"price", ps::arrow_value<double>>,
                   ps::field<"label", ps::arrow_value<std::int64_t>>> |
        ps::shuffle(ps::seed(7), ps::window(4)) |  // four row groups at a time
        ps::batch(64);

    auto run = loader.open();
    std::size_t rows = 0;
    double sum = 0;
    for (auto&& batch : run.epoch(0)) {
      for (const double price : get<"price">(batch)) sum += price;
      rows += get<"label">(batch).size();
    }
    std::printf("%zu rows, the sum of prices is %.1f\n", rows, sum);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
