// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a view into a temporary batch

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <utility>
#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    for (const int x : penstock::get<"a">(std::move(b))) sum += x;
#else
    for (const int x : penstock::get<"a">(b)) sum += x;
#endif
  }
  return sum == 0;
}
