// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: write shuffle before batch(n), or shuffle_batches(seed(7)) if that is meant

#include <penstock/order/shuffle.hpp>
#include <penstock/order/shuffle_batches.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::shuffle(penstock::seed(7));
#else
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::shuffle_batches(penstock::seed(7));
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
