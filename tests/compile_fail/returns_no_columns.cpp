// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: returns something that cannot be columns of a batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

int main() {
  const auto twice = [](auto& columns) {
    for (int& x : columns.values()) x *= 2;
  };
  const auto size = [](auto& columns) { return columns.size(); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(size);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(twice);
#endif
  static_cast<void>(size);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
