// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the right side of | is not a stage

#include <penstock/order/repeat.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::repeat;
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::repeat(2) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
