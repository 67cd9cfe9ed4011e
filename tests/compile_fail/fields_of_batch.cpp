// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect beside the error: name<'a'>, penstock::

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", float>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2.f), sample(3, 4.f)}) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    for (const int x : penstock::get<"image">(b)) sum += x;
#else
    for (const int x : penstock::get<"a">(b)) sum += x;
#endif
  }
  return sum == 0;
}
