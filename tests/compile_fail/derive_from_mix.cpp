// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: are numbered differently in each epoch; derive from each source

#include <penstock/inspection/derive.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>

int main() {
  const auto a = penstock::from({1, 2, 3, 4}), b = penstock::from({5, 6, 7});
#ifdef PENSTOCK_WRONG
  const auto joined = penstock::concat(a | penstock::shuffle(penstock::seed(1)), b);
#else
  const auto joined = penstock::concat(a, b);
#endif
  const auto index = penstock::derive(
      joined, "half", [](int x) { return x / 2; }, "/dev/null/nothing");
  return index.size() == 0;
}
