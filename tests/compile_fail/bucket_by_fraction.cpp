// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bucket_by's length is a function

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstdint>

int main() {
  [[maybe_unused]] const auto seconds = [](std::uint64_t) { return 1.5; };
  [[maybe_unused]] const auto ticks = [](std::uint64_t) { return std::uint64_t{24'000}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(seconds, 2, {.max_samples = 2});
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(ticks, 2, {.max_samples = 2});
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
