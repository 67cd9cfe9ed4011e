// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be callable when const

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

int main() {
  const auto twice = [](auto& columns) {
    for (int& x : columns.values()) x *= 2;
  };
  const auto counts = [n = 0](auto& columns) mutable { columns.values()[0] = ++n; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(counts);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(twice);
#endif
  static_cast<void>(counts);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
