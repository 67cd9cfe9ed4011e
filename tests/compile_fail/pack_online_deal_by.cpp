// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: without lengths each rank packs rows of its own

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/deal_by.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto sequence = [](std::uint64_t i) { return std::vector<int>(i % 5, 1); };
  [[maybe_unused]] const auto length = [](std::uint64_t i) { return i % 5; };
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::generated(9, sequence) | penstock::pack(8) | penstock::deal_by() | penstock::batch(2);
#else
  auto loader =
      penstock::generated(9, sequence) | penstock::pack(length, 8) | penstock::deal_by() | penstock::batch(2);
#endif
  std::size_t rows = 0;
  for (auto&& b : loader.epoch(0)) rows += b.size();
  return rows == 0;
}
