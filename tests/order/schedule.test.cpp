// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/order/schedule.hpp>

#include <catch2/catch.hpp>

namespace schedule_test {

namespace ps = penstock;

TEST_CASE("a schedule is a number, or a function of where a run stands") {
  const ps::schedule none, fixed = 100u;
  CHECK(none({3, 4}) == 0);
  CHECK_FALSE(fixed.changes());
  CHECK(fixed.fixed() == 100);
  CHECK(fixed({3, 4}) == 100);
  const ps::schedule grows = [](ps::position at) { return at.epoch * 1000 + at.index; };
  CHECK(grows.changes());
  CHECK(grows.fixed() == 0);
  CHECK(grows({3, 4}) == 3004);
  const ps::schedule copy = grows;
  CHECK(copy({1, 2}) == 1002);
}

}  // namespace schedule_test
