// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the right side of | is not a stage

#include <penstock/order/weighted.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

#include <vector>

int main() {
  const std::vector<int> weights{1, 0, 2, 3};
#ifdef PENSTOCK_WRONG
  (void)(penstock::from({1, 2, 3, 4}) | penstock::weighted);
#else
  (void)(penstock::from({1, 2, 3, 4}) | penstock::weighted(weights, penstock::seed(7)));
#endif
  return weights.empty();
}
