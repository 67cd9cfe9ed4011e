// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: longest_first knows samples by their numbers

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/longest_first.hpp>

int main() {
  const auto some = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::mix(penstock::weights{1, 1}, some, some) | penstock::batch(2) | penstock::longest_first;
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, some, some) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
