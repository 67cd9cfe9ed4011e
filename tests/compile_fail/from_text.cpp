// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: from(range) is a dataset in memory, and this is a text; write lines(path)

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/stage/batch.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from("train.txt") | penstock::batch(2, penstock::ragged);
#else
  auto loader = penstock::lines("train.txt") | penstock::batch(2, penstock::ragged);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
