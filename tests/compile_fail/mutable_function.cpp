// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be callable when const

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

int main() {
  const auto add = [](int x) { return x + 1; };
  auto count = [n = 0](int x) mutable { return x + ++n; };

#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(count) | penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(add) | penstock::batch(2);
#endif
  static_cast<void>(count);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
