// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a count, a size or a rank is an integer, and this is a bool

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(true);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(1);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
