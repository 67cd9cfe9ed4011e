// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: join sources, and sources with stages; one argument is something else

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>

#include <array>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::mix(penstock::weights{1, 1}, numbers, std::array<int, 2>{1, 2}) | penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, numbers, penstock::from(std::array<int, 2>{1, 2})) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
