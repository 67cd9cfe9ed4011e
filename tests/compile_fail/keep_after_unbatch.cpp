// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: keep_in_memory after unbatch, which makes several samples of one

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/unbatch.hpp>

#include <vector>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(std::vector<std::vector<int>>{{1, 2}, {3}}) | penstock::unbatch |
                penstock::keep_in_memory(1 << 20) | penstock::batch(2);
#else
  auto loader = penstock::from(std::vector<std::vector<int>>{{1, 2}, {3}}) |
                penstock::keep_in_memory(1 << 20) | penstock::unbatch | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
