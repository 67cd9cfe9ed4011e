// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: state() is a run

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  int sum = 0;
  auto run = loader.open();
  for (auto&& b : run)
    for (const int x : b.values()) sum += x;
#ifdef PENSTOCK_WRONG
  const penstock::state where = loader.state();
#else
  const penstock::state where = run.state();
#endif
  return sum == 0 || where.epoch != 0;
}
