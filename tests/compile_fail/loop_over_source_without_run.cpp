// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a plan is opened by <penstock/run/run.hpp>, which is not included before this

#ifndef PENSTOCK_WRONG
#include <penstock/run/run.hpp>
#endif
#include <penstock/source/from.hpp>

int main() {
  int sum = 0;
  for (const int x : penstock::from({1, 2, 3, 4})) sum += x;
  return sum == 0;
}
