// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this is not an option of batch; give it tail::keep, tail::drop or tail::pad

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2, true);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2, penstock::tail::drop);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
