// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the second argument of bucket_by says what its buckets are

#include <penstock/image/aspect_buckets.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstdint>

int main() {
  const penstock::aspect_buckets buckets(512 * 512);
  [[maybe_unused]] const auto none = [](std::uint64_t) { return nullptr; };
  [[maybe_unused]] const auto size = [](std::uint64_t) { return penstock::image_size{640, 480}; };
#ifdef PENSTOCK_WRONG
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(none, buckets, {.max_samples = 2});
#else
  auto loader = penstock::from({1, 2, 3, 4}) | penstock::bucket_by(size, buckets, {.max_samples = 2});
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
