// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/repeat.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(ps::order_stage<ps::repeat_stage>, "repeat is an order stage");

TEST_CASE("order/repeat: k epochs before it are one epoch after it") {
  const auto made = ps::repeat(3).make({10, nullptr});
  REQUIRE(made.size() == 30);
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    const auto bound = made.bind(epoch);
    for (std::uint64_t i = 0; i < 30; ++i) {
      const ps::position upstream = bound(i);
      CHECK(upstream == ps::position{epoch * 3 + i / 10, i % 10});
      CHECK(made.position_of(upstream) == ps::position{epoch, i});
    }
  }
  CHECK_FALSE(made.position_of({0, 10}).has_value());
}

TEST_CASE("order/repeat: endless repeat has 2^63 positions and one epoch") {
  const auto made = ps::repeat().make({10, nullptr});
  CHECK(made.size() == std::uint64_t{1} << 63);
  CHECK(made.endless());
  const std::uint64_t last = made.size() - 1;
  CHECK(made.bind(0)(last) == ps::position{last / 10, last % 10});
  CHECK(made.position_of({last / 10, last % 10}) == ps::position{0, last});
  CHECK_FALSE(made.position_of({last / 10, last % 10 + 1}).has_value());
  CHECK_FALSE(made.position_of({std::numeric_limits<std::uint64_t>::max(), 0}).has_value());
  CHECK_THROWS_WITH(made.bind(1), penstock_test::contains("write repeat(k)"));
}

TEST_CASE("order/repeat: more than 2^63 positions are endless, and epochs beyond 64 bits are an error") {
  CHECK(ps::repeat(std::uint64_t{1} << 62).make({10, nullptr}).endless());
  const auto many = ps::repeat(std::uint64_t{1} << 60).make({2, nullptr});
  CHECK_FALSE(many.endless());
  CHECK(many.bind(15)(1).epoch == std::uint64_t{15} << 60);
  CHECK_THROWS_WITH(many.bind(16), penstock_test::contains("beyond 64 bits"));
}

TEST_CASE("order/repeat: repeating nothing gives nothing") {
  CHECK(ps::repeat(0).make({10, nullptr}).size() == 0);
  CHECK(ps::repeat(7).make({}).size() == 0);
  CHECK(ps::repeat().make({}).size() == 0);
  CHECK_FALSE(ps::repeat(0).make({10, nullptr}).position_of({0, 1}).has_value());
  CHECK_FALSE(ps::repeat().make({}).position_of({0, 0}).has_value());
}

TEST_CASE("order/repeat: shard boundaries are repeated, up to a bound") {
  const auto starts =
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 4, 10});
  CHECK(*ps::repeat(2).make({10, starts}).output().starts == std::vector<std::uint64_t>{0, 4, 10, 14, 20});
  CHECK(ps::repeat(1'000'000).make({10, starts}).output().starts == nullptr);
  CHECK(ps::repeat().make({10, starts}).output().starts == nullptr);
}

TEST_CASE("order/repeat: describes itself") {
  CHECK(ps::repeat(90).describe() == "repeat(90)");
  CHECK(ps::repeat().describe() == "repeat()");
}
