// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a count, a size or a rank is an integer, and this is a bool

#include <penstock/order/repeat.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/workers.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::workers(false);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::workers(0);
#endif
  int sum = 0;
  for (const int x : loader) sum += x;
  return sum == 0;
}
