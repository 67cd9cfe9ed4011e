// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: penstock: a run is moved, never copied

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
#ifdef PENSTOCK_WRONG
  auto second = run;
#else
  auto& second = run;
#endif
  int sum = 0;
  for (auto&& b : second)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
