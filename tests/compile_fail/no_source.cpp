// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this chain has no source

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

int main() {
  const auto twice = [](int x) { return 2 * x; };
  const auto stages = penstock::map(twice) | penstock::batch(3);
#ifdef PENSTOCK_WRONG
  auto run = stages.open();
#else
  auto run = (penstock::from({1, 2, 3, 4}) | stages).open();
#endif
  int sum = 0;
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch)
      for (const int x : b.values()) sum += x;
  return sum == 0;
}
