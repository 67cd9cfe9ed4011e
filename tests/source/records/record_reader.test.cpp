// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/records/record_reader.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace coming_samples_test {

using penstock::detail::coming_samples;

TEST_CASE(
    "source/records/record_reader: samples that are not evaluated after all do not hide those behind them") {
  coming_samples coming;
  const auto take = [&coming](std::uint64_t index) {
    const auto* const found = coming.take(index);
    return found != nullptr && found->index() == index;
  };
  for (const std::uint64_t index : {7u, 3u, 9u, 3u, 5u}) coming.add({1, index - 2, 2});
  CHECK(take(7));
  CHECK(take(9));        // 3 was kept in memory
  CHECK_FALSE(take(8));  // one that nobody announced takes no place
  CHECK(take(5));
  CHECK_FALSE(take(3));
  coming.clear();
  CHECK(coming.all().empty());
}

}  // namespace coming_samples_test
