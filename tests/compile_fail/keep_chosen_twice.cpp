// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: twice in one expression; one chooses among all places

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) |
                penstock::keep_in_memory(1 << 20, penstock::keep_at::automatic) |
#ifdef PENSTOCK_WRONG
                penstock::keep_in_memory(1 << 20, penstock::keep_at::automatic) |
#endif
                penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
