// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/base/duration_counts.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace duration_counts_test {

namespace ps = penstock;
using ps::duration_counts;

TEST_CASE("a duration falls into the first bucket whose bound is not less") {
  CHECK(duration_counts::bound(0) == std::ldexp(1.0, -20));
  CHECK(duration_counts::bound(26) == 64);
  const auto by_hand = [](std::uint64_t ns) {
    std::size_t i = 0;
    while (i + 1 < duration_counts::buckets && static_cast<double>(ns) > 1e9 * duration_counts::bound(i)) ++i;
    return i;
  };
  for (std::size_t i = 0; i + 1 < duration_counts::buckets; ++i)
    for (int off = -2; off <= 2; ++off) {
      const auto ns = static_cast<std::uint64_t>(1e9 * duration_counts::bound(i) + off);
      CHECK(duration_counts::bucket_of(ns) == by_hand(ns));
    }
  CHECK(duration_counts::bucket_of(0) == 0);
  CHECK(duration_counts::bucket_of(~std::uint64_t{0}) == 27);
}

TEST_CASE("a recorder gives what was added") {
  ps::duration_recorder recorder;
  duration_counts expected;
  for (std::uint64_t ns : {0ull, 1ull, 1000ull, 5'000'000ull, 70'000'000'000ull}) {
    recorder.add(ns);
    recorder.add_alone(ns);
    expected.add(ns);
    expected.add(ns);
  }
  CHECK(recorder.read() == expected);
  CHECK(expected.count() == 10);
  duration_counts twice = expected;
  twice += expected;
  CHECK(twice.count() == 20);
  CHECK(twice.sum_ns == 2 * expected.sum_ns);
}

}  // namespace duration_counts_test
