// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a seed is an integer; write seed(static_cast<std::uint64_t>(x))

#include <penstock/order/split.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>

int main() {
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::split(0.5, penstock::seed(0.5));
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::split(0.5, penstock::seed(5));
#endif
  int sum = 0;
  for (const int x : loader) sum += x;
  return sum == 0;
}
