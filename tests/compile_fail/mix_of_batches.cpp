// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: which join samples; write batch(n) after it

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader =
      penstock::mix(penstock::weights{1, 1}, numbers, numbers | penstock::batch(2)) | penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, numbers, numbers) | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += static_cast<int>(x);
  return sum == 0;
}
