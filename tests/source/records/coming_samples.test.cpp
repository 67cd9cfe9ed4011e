// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/records/coming_samples.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace coming_samples_test {

using penstock::detail::coming_samples;

TEST_CASE(
    "source/records/coming_samples: samples that are not evaluated after all do not hide those behind them") {
  coming_samples coming;
  // Without tables nothing is returned, but a place is taken.
  const auto take = [&coming](std::uint64_t index) { return coming.take(index) == nullptr; };
  for (const std::uint64_t index : {7u, 3u, 9u, 3u, 5u}) coming.add({nullptr, index, 0, 0, 0, 0});
  CHECK(coming.left() == 5);
  CHECK(take(7));
  CHECK(coming.left() == 4);
  CHECK(take(9));  // 3 was kept in memory
  CHECK(coming.left() == 2);
  CHECK(take(8));  // one that nobody announced takes no place
  CHECK(coming.left() == 2);
  CHECK(take(5));
  CHECK(coming.left() == 0);
  CHECK(take(3));
  coming.clear();
  CHECK(coming.left() == 0);
}

}  // namespace coming_samples_test
