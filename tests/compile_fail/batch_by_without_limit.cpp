// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: write batch_by(cost, limit)

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch_by.hpp>

#include <cstdint>

int main() {
  [[maybe_unused]] const auto cost = [](std::uint64_t) { return 1u; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(cost);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(cost, 2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
