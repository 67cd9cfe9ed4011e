// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: no field of that name reaches this stage

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
  const auto twice = [](int x) { return 2 * x; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::map<"x">(twice) |
                penstock::batch(2);
#else
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::map<"a">(twice) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
