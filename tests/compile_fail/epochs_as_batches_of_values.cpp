// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: run.epochs(n) gives epochs, and this is one of them, not a batch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto&& b : run.epochs(3))
    for (const int x : b.values()) sum += x;
#else
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch)
      for (const int x : b.values()) sum += x;
#endif
  return sum == 0;
}
