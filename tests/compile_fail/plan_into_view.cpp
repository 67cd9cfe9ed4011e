// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the right side of | is not a stage

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <ranges>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto&& b : loader | std::views::take(3))
    for (const int x : b.values()) sum += x;
#else
  for (auto&& b : run | std::views::take(3))
    for (const int x : b.values()) sum += x;
#endif
  return sum == 0;
}
