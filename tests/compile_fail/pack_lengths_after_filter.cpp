// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pack looks up lengths before samples are read

#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/pack.hpp>

#include <cstdint>
#include <vector>

int main() {
  const auto sequence = [](std::uint64_t i) { return std::vector<int>(i % 5, 1); };
  const auto long_ones = [](const std::vector<int>& x) { return x.size() > 1; };
  [[maybe_unused]] const auto length = [](std::uint64_t i) { return i % 5; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::generated(9, sequence) | penstock::filter(long_ones) | penstock::pack(length, 8) |
                penstock::batch(2);
#else
  auto loader =
      penstock::generated(9, sequence) | penstock::filter(long_ones) | penstock::pack(8) | penstock::batch(2);
#endif
  std::size_t rows = 0;
  for (auto&& b : loader.epoch(0)) rows += b.size();
  return rows == 0;
}
