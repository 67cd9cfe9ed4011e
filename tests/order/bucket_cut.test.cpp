// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/bucket_cut.hpp>

#include <penstock/order/bucket_rule.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/shuffle.hpp>

#include "support/bucket_rules.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace bucket_cut_test {

namespace ps = penstock;
using namespace bucket_rules;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

using numbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("order/bucket_cut: a cut that lists the positions of one bucket in each step") {
  const auto orders = ps::make_order_chain({5000}, ps::shuffle(ps::seed(3)));
  const auto lengths = [&](std::uint64_t p) { return by_seven(orders.sample_at({1, p}).index); };
  for (const std::uint64_t world : {1u, 3u, 64u}) {
    const auto made = rule_of(by_seven, {.max_tokens = 50}).make(orders, {.world = world, .samples = 5000});
    static_assert(ps::step_cut<std::remove_cv_t<decltype(made)>> && ps::listing_cut<ps::bucketed_steps>);
    CHECK(made.usual() >= 6);
    CHECK(made.usual() <= 50);
    std::vector<ps::bucketed_steps> ranks;
    for (std::uint64_t rank = 0; rank < world; ++rank) ranks.push_back(made.on(world, rank).bind(1));
    numbers all;
    std::uint64_t before = 0;
    for (std::uint64_t s = 0; s < ranks[0].steps(); ++s) {
      numbers step;
      for (const ps::bucketed_steps& mine : ranks) {
        const std::size_t seen = step.size();
        mine.list(s, step);
        CHECK(mine.at(s).valid() == step.size() - seen);
        CHECK(mine.at(s).slots() == step.size() - seen);
      }
      CHECK(std::is_sorted(step.begin(), step.end()));
      CHECK(ranks[0].before(s) == before);
      CHECK(ranks[0].count(s) == step.size());
      CHECK(!step.empty());
      before += step.size();
      for (const std::uint64_t p : step)
        CHECK((lengths(p) <= 2 ? 0u : lengths(p) <= 4 ? 1u : 2u) == ranks[0].bucket(s));
      all.insert(all.end(), step.begin(), step.end());
    }
    CHECK(before == 5000);
    CHECK(ranks[0].before(ranks[0].steps() + 7) == 5000);
    CHECK(ranks[0].count(ranks[0].steps()) == 0);
    std::sort(all.begin(), all.end());
    for (std::uint64_t p = 0; p < 5000; ++p) REQUIRE(all[p] == p);
  }
}

TEST_CASE("order/bucket_cut: tokens are padded, rounded up, and grow with the square") {
  const ps::detail::bucket_limits plain{{.max_tokens = 100, .max_samples = 7}, 8, 3};
  CHECK(plain.tokens(0) == 0);
  CHECK(plain.tokens(1) == 8);
  CHECK(plain.tokens(8) == 8);
  CHECK(plain.room(8, 100) == 21);
  CHECK(plain.room(24, 100) == 12);
  CHECK(plain.room(101, 100) == 0);
  CHECK(plain.room(0, 100) == 21);
  const ps::detail::bucket_limits square{{.max_tokens = 100, .quadratic = 20}, 1, 1};
  CHECK(square.tokens(30) == 75);
  CHECK(square.tokens(~std::uint64_t{0}) == ~std::uint64_t{0});
  CHECK(square.tokens(std::uint64_t{1} << 32) == ~std::uint64_t{0});
  CHECK(square.room(~std::uint64_t{0}, 100) == 0);
}

TEST_CASE("order/bucket_cut: ranks share a pass over an epoch; with limits over all of them, any worlds do") {
  const auto orders = ps::make_order_chain({500}, ps::shuffle(ps::seed(3)));
  std::atomic<int> asked{0};
  const auto counting = [&asked](std::uint64_t i) {
    ++asked;
    return by_seven(i);
  };
  const ps::cut_input in{.world = 4, .samples = 500};
  const auto by_rank = rule_of(counting, {.max_samples = 9}).make(orders, in);
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    const auto bound = by_rank.on(4, rank).bind(0);
    CHECK_FALSE(bound.elastic());
  }
  CHECK(asked == 500);
  (void)by_rank.on(5, 0).bind(0);
  CHECK(asked == 1000);
  asked = 0;
  const auto global = rule_of<true>(counting, {.max_samples = 9}).make(orders, in);
  for (const std::uint64_t world : {4u, 5u, 1u}) {
    const auto bound = global.on(world, world - 1).bind(0);
    CHECK(bound.elastic());
    CHECK(bound.count(0) == 9);
  }
  CHECK(asked == 500);
}

TEST_CASE("order/bucket_cut: a pass ends when it is told to") {
  const auto orders = ps::make_order_chain({100'000}, ps::shuffle(ps::seed(3)));
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  const auto stopping = [&](std::uint64_t i) {
    if (++asked == 150) stop = true;
    return by_seven(i);
  };
  for (const ps::bucket_edges& edges : {ps::bucket_edges{2}, ps::bucket_edges(5)}) {
    stop = false;
    asked = 0;
    const auto made = rule_of(stopping, {.max_samples = 9}, edges).make(orders, {.samples = 100'000});
    CHECK_THROWS_AS(made.bind(0, &stop), ps::pass_stopped);
    CHECK(asked == 150);
    CHECK(made.bind(0).before(~std::uint64_t{0}) == 100'000);
  }
}

TEST_CASE("order/bucket_cut: an epoch that fails has one step, which throws whenever it is asked for") {
  const auto orders = ps::make_order_chain({50});
  const auto made = rule_of(by_seven, {.max_tokens = 6}).make(orders, {.world = 2, .samples = 50});
  const auto bound = made.bind(3);
  CHECK(bound.steps() == 1);
  CHECK(bound.count(0) == 0);
  CHECK(bound.before(1) == 0);
  for (int i = 0; i < 2; ++i)
    CHECK_THAT(error_of([&] { (void)bound.at(0); }), contains("sample 6 counts as 7 tokens"));
  CHECK_THAT(error_of([&] { bound.check(); }), contains("position 3:6"));
}

}  // namespace bucket_cut_test
