// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: run.epochs(n) gives epochs, and this is one of them, not a batch

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", float>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2.f), sample(3, 4.f)}) | penstock::batch(2);
  auto run = loader.open();
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto&& b : run.epochs(3))
    for (const int x : penstock::get<"a">(b)) sum += x;
#else
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch)
      for (const int x : penstock::get<"a">(b)) sum += x;
#endif
  return sum == 0;
}
