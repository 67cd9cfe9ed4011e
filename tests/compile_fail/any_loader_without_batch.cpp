// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: any_loader hands out batches, and this plan has none

#include <penstock/integration/any_loader.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <span>

struct numbers {
  std::span<const int> all;
};

int main() {
  const auto view = [](auto& b) { return numbers{b.values()}; };
  const auto samples = penstock::from({1, 2, 3, 4}) | penstock::map([](int x) { return 2 * x; });
#ifdef PENSTOCK_WRONG
  penstock::any_loader<numbers> loader(samples, view);
#else
  penstock::any_loader<numbers> loader(samples | penstock::batch(2), view);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.all) sum += x;
  return sum == 0;
}
