// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: any_loader<my_batch> is made of a plan with batches and a function

#include <penstock/integration/any_loader.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <span>

struct numbers {
  std::span<const int> all;
};

int main() {
  const auto view = [](auto& b) { return numbers{b.values()}; };
#ifdef PENSTOCK_WRONG
  penstock::any_loader<numbers> loader(penstock::from({1, 2, 3, 4}), view);
#else
  penstock::any_loader<numbers> loader(penstock::from({1, 2, 3, 4}) | penstock::batch(2), view);
#endif
  static_cast<void>(view);
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.all) sum += x;
  return sum == 0;
}
