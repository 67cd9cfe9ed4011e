// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: batch after batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <array>
#include <vector>

int main() {
  const auto arrays = penstock::from(std::vector<std::array<int, 2>>(4));
#ifdef PENSTOCK_WRONG
  auto loader = arrays | penstock::batch(2) | penstock::batch(2);
#else
  auto loader = arrays | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) {
    for (const int x : b.values().flat()) sum += x;
    sum += b.values()(1, 1);
  }
  return sum == 0;
}
