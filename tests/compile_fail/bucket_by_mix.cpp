// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: bucket_by looks up lengths by sample number

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <cstdint>

int main() {
  [[maybe_unused]] const auto length = [](std::uint64_t) { return std::uint64_t{1}; };
  const auto mixed = penstock::mix(penstock::weights{1, 1}, penstock::from({1, 2}), penstock::from({3, 4}));
#ifdef PENSTOCK_WRONG
  auto loader = mixed | penstock::bucket_by(length, 2, {.max_samples = 2});
#else
  auto loader = mixed | penstock::batch(2);
#endif
  int sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const int x : b.values()) sum += x;
  return sum == 0;
}
