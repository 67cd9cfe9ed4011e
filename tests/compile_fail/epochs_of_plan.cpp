// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: epochs(n) is a run

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  int sum = 0;
  auto run = loader.open();
#ifdef PENSTOCK_WRONG
  for (auto epoch : loader.epochs(3))
#else
  for (auto epoch : run.epochs(3))
#endif
    for (auto&& b : epoch)
      for (const int x : b.values()) sum += x;
  return sum == 0;
}
