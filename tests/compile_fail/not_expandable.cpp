// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: unbatch needs a range, an array, or a record of these

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/unbatch.hpp>

#include <vector>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::unbatch | penstock::batch(2);
#else
  auto loader =
      penstock::from(std::vector<std::vector<int>>{{1, 2}, {3}}) | penstock::unbatch | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
