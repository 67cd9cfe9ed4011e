// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bad_samples inside mix, zip or concat; a budget counts the samples of the whole run

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>

int main() {
  const auto numbers = penstock::from({1, 2, 3, 4});
#ifdef PENSTOCK_WRONG
  auto loader = penstock::mix(penstock::weights{1, 1}, numbers, numbers | penstock::bad_samples::skip(1)) |
                penstock::batch(2);
#else
  auto loader = penstock::mix(penstock::weights{1, 1}, numbers, numbers) | penstock::bad_samples::skip(1) |
                penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
