// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is unknown after filter or unbatch

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>

int main() {
  const auto even = [](int x) { return x % 2 == 0; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::filter(even) | penstock::shuffle(penstock::seed(1)) |
                penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::shuffle(penstock::seed(1)) | penstock::filter(even) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
