// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: plans with different stages have different types

#include <penstock/integration/any_loader.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <span>

struct numbers {
  std::span<const int> all;
};

int main(int arguments, char**) {
  const auto source = penstock::from({1, 2, 3, 4});
  int sum = 0;
#ifdef PENSTOCK_WRONG
  const auto loader = arguments > 1 ? source | penstock::shuffle(penstock::seed(7)) | penstock::batch(2)
                                    : source | penstock::batch(2);
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
#else
  using any = penstock::any_loader<numbers>;
  const auto view = [](auto& b) { return numbers{b.values()}; };
  auto loader = arguments > 1 ? any(source | penstock::shuffle(penstock::seed(7)) | penstock::batch(2), view)
                              : any(source | penstock::batch(2), view);
  for (auto&& b : loader.epoch(0))
    for (const int x : b.all) sum += x;
#endif
  return sum == 0;
}
