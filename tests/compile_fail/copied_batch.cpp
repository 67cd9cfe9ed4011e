// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: penstock: a batch is moved, never copied; write auto&& b

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
  int sum = 0;
  for (auto epoch : run.epochs(2)) {
#ifdef PENSTOCK_WRONG
    for (auto b : epoch)
#else
    for (auto&& b : epoch)
#endif
      for (const int x : b.values()) sum += x;
  }
  return sum == 0;
}
