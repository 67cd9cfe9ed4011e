// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the guarantee is lost by a source that can only be read forward

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/require.hpp>

#include <forward_list>

int main() {
  const std::forward_list<int> numbers{1, 2, 3};
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::from(numbers) | penstock::batch(2) | penstock::require<penstock::guarantee::resumable>;
#else
  auto loader =
      penstock::from(numbers) | penstock::batch(2) | penstock::require<penstock::guarantee::deterministic>;
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
