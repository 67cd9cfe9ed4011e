// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: get<name> is for a field, and the samples of this batch are no records

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  int sum = 0;
  for (auto&& b : loader) {
#ifdef PENSTOCK_WRONG
    for (const int x : penstock::get<"x">(b)) sum += x;
#else
    for (const int x : b.values()) sum += x;
#endif
  }
  return sum == 0;
}
