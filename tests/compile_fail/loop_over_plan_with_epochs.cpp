// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the epochs of this plan differ, and a loop over it would give epoch 0 every time

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(7)) | penstock::batch(2);
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
#else
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
#endif
  return sum == 0;
}
