// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: what arrives here has no names

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", int>>;

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::fields<"a"> | penstock::batch(2);
#else
  auto loader = penstock::from(std::vector<sample>{sample(1, 2), sample(3, 4)}) | penstock::fields<"a"> |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
