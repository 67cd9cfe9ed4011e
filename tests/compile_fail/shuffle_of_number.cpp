// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bare number here would be a seed, and the size of a buffer in WebDataset and tf.data

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(1000);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(0));
#endif
  int sum = 0;
  for (const int x : loader.epoch(0)) sum += x;
  return sum == 0;
}
