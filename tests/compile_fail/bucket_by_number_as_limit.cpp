// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the third argument of bucket_by says what its limits are

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstdint>

int main() {
  [[maybe_unused]] const auto length = [](std::uint64_t) { return std::uint64_t{1}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(length, 2, 16);
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(length, 2, {.max_tokens = 16});
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
