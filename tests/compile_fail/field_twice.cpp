// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the same field is named twice

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/enumerate.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::enumerate | penstock::enumerate | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::enumerate | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
