// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: penstock: a batch is moved, never copied; write auto&& b

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"x", int>, penstock::field<"y", int>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    auto [x, y] = b;
#else
    auto& [x, y] = b;
#endif
    for (const int one : x) sum += one;
    for (const int one : y) sum += one;
  }
  return sum == 0;
}
