// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a budget is a count of bad samples or a fraction, and this is a bool

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bad_samples::skip(true) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bad_samples::skip(1) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
