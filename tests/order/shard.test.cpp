// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/shard.hpp>

#include <concepts>
#include <cstdint>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(std::same_as<ps::shard_stage::penstock_part, ps::shard_tag>, "shard has a tag of its own");
static_assert(!ps::order_stage<ps::shard_stage>, "shard changes no position, so it is no order stage");

namespace {
struct counting_hash {
  int added = 0;
  template <class... Piece>
  void add(const Piece&...) {
    ++added;
  }
};
}  // namespace

TEST_CASE("order/shard: records the part of the work") {
  const auto stage = ps::shard(3, 8);
  CHECK(stage.part.rank == 3);
  CHECK(stage.part.size == 8);
  CHECK(stage.describe() == "shard(rank 3 of 8)");
  ps::world here;
  here.rank = 1;
  here.size = 2;
  here.node = 1;
  here.nodes = 2;
  CHECK(ps::shard(here).part == here);
}

TEST_CASE("order/shard: a rank that is not below the world's size is an error with both numbers") {
  CHECK_THROWS_WITH(ps::shard(8, 8), penstock_test::contains("rank 8 is not below the world's size 8"));
  CHECK_THROWS_WITH(ps::shard(0, 0), penstock_test::contains("rank 0"));
}

TEST_CASE("order/shard: is not part of the sequence's fingerprint") {
  counting_hash h;
  ps::shard(3, 8).fingerprint(h);
  CHECK(h.added == 0);
}
