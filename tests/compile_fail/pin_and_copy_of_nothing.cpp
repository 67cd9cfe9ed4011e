// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pin_and_copy is given a device, or nothing and no parentheses

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::pin_and_copy();
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::pin_and_copy;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
