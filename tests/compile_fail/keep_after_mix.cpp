// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory behind a source whose samples have other numbers in each epoch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>

int main() {
  const auto some = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader = penstock::mix(penstock::weights{1, 1}, some, some) | penstock::keep_in_memory(1 << 20) |
                penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, some | penstock::keep_in_memory(1 << 20),
                              some | penstock::keep_in_memory(1 << 20)) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
