// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: epochs() of a temporary run

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto loader = penstock::from({1, 2, 3, 4}) | penstock::batch(2);
  auto run = loader.open();
  int sum = 0;
#ifdef PENSTOCK_WRONG
  for (auto epoch : loader.open().epochs(2))
#else
  for (auto epoch : run.epochs(2))
#endif
    for (auto&& b : epoch) sum += static_cast<int>(b.size());
  return sum == 0;
}
