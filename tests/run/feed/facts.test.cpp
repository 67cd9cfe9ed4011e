// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/feed.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <list>

namespace facts_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

template <class Plan>
ps::feed_facts facts_of(const Plan& p) {
  return ps::make_feed_facts(p, ps::make_sample_orders(p), 16);
}
constexpr auto odd = [](int x) { return x % 2 == 1; };

}  // namespace

TEST_CASE("run/feed_facts: a plan with batches has the cut of its batch") {
  const auto facts =
      facts_of(ps::from(first_ints(50)) | ps::shuffle(ps::seed(1), ps::window(1), ps::lanes(2)) |
               ps::shard(1, 3) | ps::batch(4, ps::tail::pad));
  CHECK_FALSE(facts.by_sample);
  CHECK_FALSE(facts.has_buffer);
  CHECK(facts.mine.size == 50);
  CHECK(facts.mine.global == 12);
  CHECK(facts.mine.rank == 1);
  CHECK(facts.mine.lanes == 2);
  CHECK(facts.mine.policy == ps::tail::pad);
  CHECK_FALSE(facts.after_batch.any());
}

TEST_CASE("run/feed_facts: order stages after batch are called without their types") {
  const auto facts =
      facts_of(ps::from(first_ints(50)) | ps::batch(5) | ps::skip(2) | ps::repeat(3) | ps::steps(7));
  REQUIRE(facts.after_batch.any());
  CHECK(facts.after_batch.size() == 24);
  CHECK(facts.after_batch.sample_at({1, 9}) == ps::position{4, 3});
  CHECK(facts.fixed_steps == 7);
}

TEST_CASE("run/feed_facts: without batch a step has one sample per rank") {
  const auto source = ps::from(first_ints(50)) | ps::shuffle_buffer(7, ps::seed(3)) | ps::shard(1, 3);
  const auto rows = facts_of(source);
  CHECK(rows.by_sample);
  CHECK(rows.dealt_in_rotation);
  CHECK(rows.chunk == 16);
  CHECK(rows.mine.global == 3);
  CHECK(rows.buffer_capacity == 7);
  CHECK(rows.has_buffer);
  CHECK_FALSE(rows.shard_before_buffer);
  const auto kept = facts_of(ps::from(first_ints(50)) | ps::filter(odd) | ps::shard(1, 3) | ps::batch(2) |
                             ps::skip(3) | ps::steps(4));
  CHECK(kept.mine.world == 1);
  CHECK_FALSE(kept.dealt_in_rotation);
  CHECK(kept.max_steps == 7);
}

TEST_CASE("run/feed_facts: nothing is known about a forward source") {
  const auto forward = facts_of(ps::from(std::list<int>{1, 2, 3}) | ps::shuffle_buffer(2) | ps::batch(2));
  CHECK(forward.forward);
  CHECK(forward.by_sample);
  CHECK_FALSE(forward.has_buffer);
  CHECK(forward.mine.size == 0);
}

TEST_CASE("run/feed_facts: batch_by has a cut of its own") {
  const auto cost = [](std::uint64_t) { return 2u; };
  const auto facts =
      facts_of(ps::from(first_ints(50)) | ps::take(41) | ps::shard(1, 3) | ps::batch_by(cost, 8));
  REQUIRE(facts.uneven.any());
  CHECK_FALSE(facts.by_sample);
  CHECK(facts.mine.size == 41);
  CHECK(facts.mine.world == 3);
  CHECK(facts.mine.rank == 1);
  CHECK(facts.uneven.usual() == 4);
  CHECK(facts.uneven.bind(0).steps() == 4);
  CHECK(facts.uneven.bind(0).at(0).base() == 4);
  CHECK_FALSE(facts_of(ps::from(first_ints(50)) | ps::batch(4)).uneven.any());
}

}  // namespace facts_test
