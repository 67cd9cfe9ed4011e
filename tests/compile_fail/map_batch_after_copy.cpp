// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: map_batch after pin_and_copy

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>

int main() {
  const auto twice = [](auto& columns) {
    for (int& x : columns.values()) x *= 2;
  };

#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::pin_and_copy | penstock::map_batch(twice);
#else
  auto loader =
      penstock::from({1, 2, 3, 4}) | penstock::batch(2) | penstock::map_batch(twice) | penstock::pin_and_copy;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
