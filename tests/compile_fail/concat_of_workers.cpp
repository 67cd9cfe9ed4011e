// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the only annotation allowed is seed(n)

#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader = penstock::concat(numbers | penstock::workers(2), numbers) | penstock::batch(2);
#else
  auto loader = penstock::concat(numbers, numbers) | penstock::workers(2) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader)
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
