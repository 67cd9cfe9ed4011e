// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this stage chooses or reorders samples but comes after batch

#include <penstock/order/split.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::split(0.5, penstock::seed(7));
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::split(0.5, penstock::seed(7)) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
