// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: for batches of n samples write batch(n)

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch_by.hpp>

#include <cstdint>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch_by(5);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(5);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
