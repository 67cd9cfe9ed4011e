// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: longest_first's cost is a function that can be called when const

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/longest_first.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) |
                penstock::longest_first([](std::uint64_t) { return -1; });
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) |
                penstock::longest_first([](std::uint64_t) { return 1u; });
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
