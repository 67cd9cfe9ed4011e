// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the epochs of this plan differ, and a loop over it would give epoch 0 every time

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>

int main() {
  auto samples = penstock::concat(penstock::from({1, 2, 3}) | penstock::shuffle(penstock::seed(7)),
                                  penstock::from({4, 5}));
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (const int x : samples) sum += x;
#else
  for (const int x : samples.epoch(0)) sum += x;
#endif
  return sum == 0;
}
