// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: steps(n) counts batches

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/steps.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::steps(3) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::steps(3);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
