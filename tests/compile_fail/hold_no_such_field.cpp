// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the batch has no field of that name

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    const auto held = penstock::hold<"x">(b);
#else
    const auto held = penstock::hold<"a">(b);
#endif
    for (const int x : held.view()) sum += x;
  }
  return sum == 0;
}
