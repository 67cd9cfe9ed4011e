// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the guarantee is lost by filter or unbatch

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/require.hpp>
#include <penstock/stage/steps.hpp>

int main() {
  const auto even = [](int x) { return x % 2 == 0; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::filter(even) | penstock::batch(2) |
                penstock::require<penstock::guarantee::lockstep>;
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::filter(even) | penstock::batch(2) |
                penstock::steps(2) | penstock::require<penstock::guarantee::lockstep>;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
