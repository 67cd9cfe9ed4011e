// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: subset's predicate must be callable with one of the values

#include <penstock/order/sample_list.hpp>
#include <penstock/order/subset.hpp>

#include <vector>

int main() {
  const penstock::sample_list labels(std::vector<int>{1, 2, 3});
#ifdef PENSTOCK_WRONG
  const auto stage = penstock::subset(labels, penstock::equals("cat"));
#else
  const auto stage = penstock::subset(labels, penstock::equals(2));
#endif
  return stage.size() == 0;
}
