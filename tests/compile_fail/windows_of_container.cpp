// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: windows takes a source of rows, alone or with decode

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>

#include <string>
#include <vector>

int main() {
  const std::vector<double> rows{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto samples = penstock::windows(rows, {.length = 1});
#else
  auto samples = penstock::windows(penstock::from(rows), {.length = 1});
#endif
  int count = 0;
  for (auto&& b : samples | penstock::batch(2)) count += b.size() != 0;
  return count == 0;
}
