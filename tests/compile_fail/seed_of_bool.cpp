// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a seed is an integer, and this is a bool

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/seed.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::seed(true);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::seed(1);
#endif
  int sum = 0;
  for (const int x : loader) sum += x;
  return sum == 0;
}
