// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: comes after pin_and_copy

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/pin_and_copy.hpp>

int main() {
  const auto twice = [](int x) { return 2 * x; };
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::pin_and_copy | penstock::map(twice);
#else
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::map(twice) | penstock::batch(2) | penstock::pin_and_copy;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
