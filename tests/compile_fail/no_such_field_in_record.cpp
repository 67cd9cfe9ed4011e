// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this record has no field of that name

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) |
                penstock::map([](const sample& s) { return penstock::get<"x">(s) + 1; }) | penstock::batch(2);
#else
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) |
                penstock::map([](const sample& s) { return penstock::get<"a">(s) + 1; }) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
