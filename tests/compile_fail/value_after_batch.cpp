// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: works on samples but comes after batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

int main() {
  const auto twice = [](int x) { return 2 * x; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map(twice);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(twice) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
