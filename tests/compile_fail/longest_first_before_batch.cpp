// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: longest_first looks for long samples in the batches that are in flight

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/longest_first.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::longest_first | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::longest_first;
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
