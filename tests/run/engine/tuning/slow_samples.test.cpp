// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/tuning/slow_samples.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>

namespace slow_samples_test {

namespace ps = penstock;

TEST_CASE("run/engine/tuning/slow_samples: the longest are remembered, about as long as they took") {
  ps::slow_samples all(1 << 20);
  CHECK(all.empty());
  CHECK(all.find(0) == 0);
  for (std::uint64_t i = 0; i < 1000; ++i) all.note(i * 977, 1'000'000 + i * 1'000'000);
  CHECK_FALSE(all.empty());
  for (std::uint64_t i = 0; i < 1000; ++i)
    CHECK(all.find(i * 977) == Approx(1'000'000. + static_cast<double>(i) * 1'000'000).margin(2000));
  CHECK(all.find(1) == 0);
  all.note(977, 0);
  CHECK(all.find(977) == 0);
  all.note(1, 500);  // too short to be told
  CHECK(all.find(1) == 0);
  all.note(2, std::uint64_t{1} << 50);
  CHECK(all.find(2) > 17'000'000'000u);

  ps::slow_samples few(10);  // room for 64
  for (std::uint64_t i = 1; i <= 1000; ++i) few.note(i, i * 1'000'000);
  std::size_t kept = 0, long_ones = 0;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    if (few.find(i) != 0) ++kept, long_ones += i > 800;
  CHECK(kept == 64);
  CHECK(long_ones > 56);
}

}  // namespace slow_samples_test
