// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/placement.hpp>

#include <penstock/order/order_chain.hpp>
#include <penstock/order/shuffle.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace placement_test {

namespace ps = penstock;

TEST_CASE("run/placement: a row's position follows from its part, or is the listed one") {
  ps::placement two;
  two.batches.emplace_back(40, 0, 3, 6, ps::position{0, 1});
  two.batches.emplace_back(46, 3, 3, 6, ps::position{0, 2});
  two.slots = 6;
  CHECK(two.index(0) == 40);
  CHECK(two.index(2) == 42);
  CHECK(two.index(3) == 46);
  CHECK_FALSE(two.batches[0].continues_in(two.batches[1]));
  CHECK(two.batches[0].continues_in(ps::batch_rows(43, 3, 3, 6, {0, 2})));
  two.listed = true;
  two.indices = {9, 8, 7, 6, 5, 4};
  CHECK(two.index(4) == 5);
}

TEST_CASE("run/placement: binds the orders for its positions only, if any") {
  const auto orders = ps::make_order_chain({100, nullptr}, ps::shuffle(ps::seed(3)));
  ps::placement some;
  some.epoch = 5;
  some.low = 20;
  some.high = 40;
  decltype(orders)::binding binding;
  some.bind(orders, binding);
  for (std::uint64_t i = 20; i < 40; ++i) REQUIRE(binding(i) == orders.sample_at({5, i}));
  some.epoch = 6;
  some.high = 20;
  some.bind(orders, binding);
  CHECK(binding.epoch() == 5);
}

}  // namespace placement_test
