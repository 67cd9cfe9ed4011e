// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/skip.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(ps::order_stage<ps::skip_stage>, "skip is an order stage");

TEST_CASE("order/skip: leaves out the first positions of every epoch") {
  const auto made = ps::skip(3).make({10, nullptr});
  CHECK(made.size() == 7);
  CHECK(made.bind(5)(0) == ps::position{5, 3});
  CHECK(made.bind(5)(6) == ps::position{5, 9});
  CHECK(made.position_of({5, 3}) == ps::position{5, 0});
  CHECK_FALSE(made.position_of({5, 2}).has_value());
  CHECK_FALSE(made.position_of({5, 10}).has_value());
}

TEST_CASE("order/skip: skipping more than there is leaves nothing") {
  CHECK(ps::skip(100).make({10, nullptr}).size() == 0);
  CHECK(ps::skip(0).make({10, nullptr}).size() == 10);
  CHECK(ps::skip(5).make({}).size() == 0);
}

TEST_CASE("order/skip: shard boundaries are cut like the positions") {
  const auto starts =
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 4, 4, 9, 10});
  const auto boundaries = [&](std::uint64_t n) { return *ps::skip(n).make({10, starts}).output().starts; };
  CHECK(boundaries(0) == *starts);
  CHECK(boundaries(1) == std::vector<std::uint64_t>{0, 3, 3, 8, 9});
  CHECK(boundaries(4) == std::vector<std::uint64_t>{0, 5, 6});
  CHECK(boundaries(5) == std::vector<std::uint64_t>{0, 4, 5});
  CHECK(boundaries(10) == std::vector<std::uint64_t>{0});
  CHECK(boundaries(99) == std::vector<std::uint64_t>{0});
  CHECK(ps::skip(6).make({10, nullptr}).output().starts == nullptr);
}

TEST_CASE("order/skip: describes itself") { CHECK(ps::skip(1000).describe() == "skip(1000)"); }
