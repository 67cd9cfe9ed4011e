// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a seed is an integer, and this is a bool: shuffle(false) would shuffle

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(false);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(0);
#endif
  int sum = 0;
  for (const int x : loader.epoch(0)) sum += x;
  return sum == 0;
}
