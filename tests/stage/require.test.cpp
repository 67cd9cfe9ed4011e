// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/require.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/require: guarantees that are kept pass and change nothing") {
  const auto plan = ps::from(first_ints(6)) | ps::shuffle(ps::seed(1)) | ps::shard(0, 1) | ps::batch(2);
  const auto asked =
      plan | ps::require<ps::guarantee::elastic, ps::guarantee::lockstep, ps::guarantee::indexed>;
  CHECK(values_of(asked) == values_of(plan));
}

TEST_CASE("stage/require: can_connect tells without an error what would not compile") {
  using mixed = decltype(ps::from(first_ints(6)) | ps::shard(0, 1) | ps::shuffle_buffer(2) | ps::batch(2));
  static_assert(!ps::can_connect<mixed, decltype(ps::require<ps::guarantee::elastic>)>);
  static_assert(ps::can_connect<mixed, decltype(ps::require<ps::guarantee::lockstep>)>);
  using filtered = decltype(ps::from(first_ints(6)) | ps::filter([](int) { return true; }) | ps::batch(2));
  static_assert(!ps::can_connect<filtered, decltype(ps::require<ps::guarantee::lockstep>)>);
  using stepped = decltype(std::declval<filtered>() | ps::steps(3));
  static_assert(ps::can_connect<stepped, decltype(ps::require<ps::guarantee::lockstep>)>);
  SUCCEED();
}
