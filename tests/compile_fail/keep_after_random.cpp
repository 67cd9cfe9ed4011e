// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory after a stage that draws random numbers

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

int main() {
  const auto noisy = [](int x, penstock::rng& random) { return x + static_cast<int>(random() % 2); };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::map(noisy) | penstock::keep_in_memory(1 << 20) |
                penstock::batch(2);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::keep_in_memory(1 << 20) | penstock::map(noisy) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
