// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a std::vector is all the sources of a mix

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
  const std::vector both{numbers, numbers};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::mix(penstock::weights{1, 1}, both, numbers) | penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, both) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
