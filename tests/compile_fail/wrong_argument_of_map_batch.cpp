// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: cannot be called with the columns of a batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>

int main() {
  const auto twice = [](auto& columns) {
    for (int& x : columns.values()) x *= 2;
  };
  const auto of_samples = [](int x) { return 2 * x; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(of_samples);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(twice);
#endif
  static_cast<void>(of_samples);
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
