// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pitched lays out the rows of arrays

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", std::vector<int>>>;

int main() {
  const std::vector<sample> samples{sample(1, std::vector{1, 2}), sample(3, std::vector{4, 5})};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(samples) | penstock::batch(2, penstock::pitched<64>);
#else
  auto loader = penstock::from(samples) | penstock::batch(2, penstock::collate<"b">(penstock::pitched<64>));
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
