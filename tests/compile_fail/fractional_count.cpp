// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a count, a size or a rank is an integer

#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::take(0.5 * 4);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::take(2);
#endif
  int sum = 0;
  for (const int x : loader) sum += x;
  return sum == 0;
}
