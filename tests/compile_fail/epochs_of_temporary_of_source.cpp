// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: epochs() of a temporary run

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

int main() {
  auto run = penstock::from({1, 2, 3, 4}).open();
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto epoch : penstock::from({1, 2, 3, 4}).open().epochs(3))
#else
  for (auto epoch : run.epochs(3))
#endif
    for (auto&& x : epoch) sum += x;
  return sum == 0;
}
