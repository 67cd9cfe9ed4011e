// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch_by's cost is a function that can be called when const with the number of a sample

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch_by.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  const auto cost = [](std::uint64_t) { return -1; };
#else
  const auto cost = [](std::uint64_t) { return 1u; };
#endif
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(cost, 2);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
