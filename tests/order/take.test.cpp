// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/take.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(ps::order_stage<ps::take_stage>, "take is an order stage");

TEST_CASE("order/take: the first positions of every epoch, and no others") {
  const auto made = ps::take(3).make({10, nullptr});
  CHECK(made.size() == 3);
  CHECK(made.bind(5)(2) == ps::position{5, 2});
  CHECK(made.position_of({5, 2}) == ps::position{5, 2});
  CHECK_FALSE(made.position_of({5, 3}).has_value());
}

TEST_CASE("order/take: taking more than there is takes all") {
  CHECK(ps::take(100).make({10, nullptr}).size() == 10);
  CHECK(ps::take(0).make({10, nullptr}).size() == 0);
  CHECK(ps::take(5).make({}).size() == 0);
}

TEST_CASE("order/take: shard boundaries are cut like the positions") {
  const auto starts =
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 4, 4, 9, 10});
  const auto boundaries = [&](std::uint64_t n) { return *ps::take(n).make({10, starts}).output().starts; };
  CHECK(boundaries(10) == *starts);
  CHECK(boundaries(99) == *starts);
  CHECK(boundaries(6) == std::vector<std::uint64_t>{0, 4, 4, 6});
  CHECK(boundaries(4) == std::vector<std::uint64_t>{0, 4});
  CHECK(boundaries(1) == std::vector<std::uint64_t>{0, 1});
  CHECK(boundaries(0).front() == 0);
  CHECK(boundaries(0).back() == 0);
  CHECK(ps::take(6).make({10, nullptr}).output().starts == nullptr);
}

TEST_CASE("order/take: describes itself") { CHECK(ps::take(1000).describe() == "take(1000)"); }
