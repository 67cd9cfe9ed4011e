// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a plan is opened by <penstock/run/run.hpp>, which is not included before this

#ifndef PENSTOCK_WRONG
#include <penstock/run/run.hpp>
#endif
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(7)) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader.epoch(3))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
