// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: where positions come from a cursor

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle_buffer(2) |
                penstock::shuffle(penstock::seed(1)) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(1)) |
                penstock::shuffle_buffer(2) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
