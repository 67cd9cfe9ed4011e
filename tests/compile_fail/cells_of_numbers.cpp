// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: cells() reads rows of parquet, delta, iceberg, arrow_ipc and arrow_stream

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/cells.hpp>
#include <penstock/stage/map.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({0, 1, 2, 3}) | penstock::cells() | penstock::batch(2);
#else
  auto loader = penstock::from({0, 1, 2, 3}) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
