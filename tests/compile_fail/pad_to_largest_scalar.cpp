// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pad_to_largest pads arrays, and a field that it is given to is a single value

#include <penstock/core/record.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include <vector>

using sample = penstock::record<penstock::field<"a", int>, penstock::field<"b", std::vector<int>>>;

int main() {
  const std::vector<sample> samples{sample(1, std::vector{1, 2}), sample(3, std::vector{4})};
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from(samples) | penstock::batch(2, penstock::pad_to_largest,
                                                          penstock::collate<"a">(penstock::pad_to_largest));
#else
  auto loader = penstock::from(samples) | penstock::batch(2, penstock::pad_to_largest);
#endif
  int sum = 0;
  for (auto&& b : loader) sum += static_cast<int>(b.size());
  return sum == 0;
}
