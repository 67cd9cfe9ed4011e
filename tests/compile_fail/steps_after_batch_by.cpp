// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this stage counts batches but comes after batch_by

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/steps.hpp>

#include <cstdint>

int main() {
  const auto cost = [](std::uint64_t) { return std::uint64_t{1}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(cost, 2) | penstock::steps(1);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::steps(1);
#endif
  (void)cost;
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
