// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: plans with different stages have different types

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main(int arguments, char**) {
  const auto source = penstock::from({1, 2, 3, 4});
  auto loader = source | penstock::shuffle(penstock::seed(7)) | penstock::batch(2);
#ifdef PENSTOCK_WRONG
  if (arguments > 1) loader = source | penstock::batch(2);
#else
  if (arguments > 1) loader = source | penstock::shuffle(penstock::seed(8)) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
