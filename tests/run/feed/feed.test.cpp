// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/feed.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace feed_test {

namespace ps = penstock;
using namespace engine_test;

TEST_CASE("run/feed: resumes after every batch, for every stage") {
  const penstock_test::deadline guard("every stage");
  const auto source = ps::generated(41, identity) | ps::map(noisy);
  SECTION("filter") {
    check_all_stops(source | ps::shuffle(ps::seed(2)) | ps::filter(odd_thirds) | ps::batch(3));
  }
  SECTION("filter and steps") {
    check_all_stops(source | ps::shuffle(ps::seed(2)) | ps::filter(odd_thirds) | ps::batch(3) | ps::steps(7));
  }
  SECTION("filter between take and skip") {
    check_all_stops(source | ps::take(40) | ps::filter(odd_thirds) | ps::skip(2) | ps::take(9) |
                    ps::batch(2) | ps::skip(1));
  }
  SECTION("filter before shard") {
    check_all_stops(source | ps::filter(odd_thirds) | ps::shard(1, 3) | ps::batch(2) | ps::steps(5));
  }
  SECTION("filter after shard and buffer") {
    check_all_stops(source | ps::shard(1, 2) | ps::shuffle_buffer(5, ps::seed(1)) | ps::filter(odd_thirds) |
                    ps::batch(2) | ps::steps(5));
  }
  SECTION("unbatch") {
    check_all_stops(ps::generated(25, [](std::uint64_t x) { return words_of(x); }) |
                    ps::shuffle(ps::seed(2)) | ps::unbatch | ps::map(noisy) | ps::batch(4));
  }
  SECTION("rows") { check_all_stops(source | ps::shuffle(ps::seed(2))); }
  SECTION("rows of a rank") {
    check_all_stops(source | ps::shuffle(ps::seed(2)) | ps::shard(1, 3) | ps::shuffle_buffer(4));
  }
  SECTION("rows that were filtered") { check_all_stops(source | ps::filter(odd_thirds) | ps::take(10)); }
  SECTION("rows of rows") {
    check_all_stops(ps::generated(25, [](std::uint64_t x) { return words_of(x); }) | ps::shuffle_buffer(5) |
                    ps::unbatch);
  }
}

TEST_CASE("run/feed: ranks divide the samples, to the last one") {
  const auto of_all_ranks = [](std::uint64_t world, const auto& make) {
    numbers all;
    for (std::uint64_t rank = 0; rank < world; ++rank) {
      auto run = make(rank).open();
      for (const std::uint64_t sample : run.epoch(0)) all.push_back(sample);
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  for (std::uint64_t world = 1; world <= 9; ++world) {
    for (std::uint64_t samples = 0; samples <= 20; ++samples) {
      INFO(samples << " samples on " << world << " ranks");
      const auto source = ps::generated(samples, identity);
      numbers all, some;
      for (std::uint64_t i = 0; i < samples; ++i) {
        all.push_back(i);
        if (odd_thirds(i)) some.push_back(i);
      }
      REQUIRE(of_all_ranks(world, [&](auto r) { return source | ps::shard(r, world) | ps::workers(0); }) ==
              all);
      REQUIRE(of_all_ranks(world, [&](auto r) {
                return source | ps::shuffle(ps::seed(1), ps::window(1), ps::lanes(3)) | ps::shard(r, world) |
                       ps::workers(0);
              }) == all);
      REQUIRE(of_all_ranks(world, [&](auto r) {
                return source | ps::shard(r, world) | ps::shuffle_buffer(2, ps::seed(1)) | ps::workers(0);
              }) == all);
      REQUIRE(of_all_ranks(world, [&](auto r) {
                return source | ps::shuffle(ps::seed(2)) | ps::shard(r, world) | ps::filter(odd_thirds) |
                       ps::workers(0);
              }) == some);
    }
  }
}

TEST_CASE("run/feed: without batches a run resumes with other ranks, again and again") {
  constexpr std::uint64_t samples = 101;
  const auto source = ps::generated(samples, identity) | ps::workers(0);
  const auto check = [](const numbers& expected, const auto& make) {
    for (std::uint64_t trial = 0; trial < 40; ++trial) {
      INFO("trial " << trial);
      numbers all;
      std::string where;
      for (std::uint64_t part = 0; part < 5; ++part) {
        const std::uint64_t draw = ps::mix64(trial * 8 + part), world = 1 + draw % 6;
        const std::uint64_t maximum = part == 4 ? samples : draw / 64 % (1 + expected.size() / 5 / world);
        std::string next;  // of any rank, also of one that has had nothing since
        for (std::uint64_t rank = 0; rank < world; ++rank) {
          const auto plan = make(rank, world);
          auto run = where.empty() ? plan.open() : plan.open(ps::state_from_string(where));
          if (maximum != 0) {  // begin() requests an element
            std::uint64_t had = 0;
            for (auto it = run.epoch(0).begin(); had != maximum && it != std::default_sentinel; ++it, ++had)
              all.push_back(*it);
          }
          if (rank == draw / 8 % world) next = to_string(run.state());
        }
        where = next;
      }
      std::sort(all.begin(), all.end());
      REQUIRE(all == expected);
    }
  };
  numbers some;
  for (std::uint64_t i = 0; i < samples; ++i)
    if (odd_thirds(i)) some.push_back(i);
  SECTION("shuffled") {
    check(iota(samples), [&](auto r, auto w) { return source | ps::shuffle(ps::seed(1)) | ps::shard(r, w); });
  }
  SECTION("with lanes") {
    check(iota(samples), [&](auto r, auto w) {
      return source | ps::shuffle(ps::seed(1), ps::window(1), ps::lanes(4)) | ps::shard(r, w);
    });
  }
  SECTION("after a buffer") {
    check(iota(samples),
          [&](auto r, auto w) { return source | ps::shuffle_buffer(7, ps::seed(1)) | ps::shard(r, w); });
  }
  SECTION("filtered") {
    check(some, [&](auto r, auto w) {
      return source | ps::shuffle(ps::seed(1)) | ps::filter(odd_thirds) | ps::shard(r, w);
    });
  }
  SECTION("filtered, the first ones left out") {
    const auto filtered = ps::generated(samples, identity) | ps::filter(odd_thirds);
    check(numbers(some.begin() + 3, some.begin() + 30), [&](auto r, auto w) {
      return filtered | ps::skip(3) | ps::take(27) | ps::workers(0) | ps::shard(r, w);
    });
  }
}

TEST_CASE("run/feed: a state counts the batches that skip leaves out") {
  const auto source = ps::generated(31, identity) | ps::filter(odd_thirds);
  check_all_stops(source | ps::batch(2) | ps::skip(3) | ps::steps(4));
  check_all_stops(source | ps::batch(2) | ps::skip(1) | ps::take(9) | ps::skip(2) | ps::steps(7));
}

TEST_CASE("run/feed: random compositions") {
  const penstock_test::deadline guard("random compositions", std::chrono::seconds(240));
  ps::rng draw(20240, 0, 0);
  const int rounds = penstock_test::long_tests() ? 400 : 100;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t n = draw.below(120), b = 1 + draw.below(9), world = 1 + draw.below(3),
                        rank = draw.below(world);
    const std::uint64_t capacity = 1 + draw.below(20), seed = draw(), steps = 1 + draw.below(12);
    const auto policy = static_cast<ps::tail>(draw.below(3));
    const std::uint64_t modulus = 1 + draw.below(3);
    INFO("round " << round << ": n " << n << ", b " << b << ", rank " << rank << " of " << world
                  << ", capacity " << capacity << ", seed " << seed << ", steps " << steps << ", modulus "
                  << modulus);
    const auto keep = [modulus](std::uint64_t x) { return x / 1000 % modulus == 0; };
    const auto start =
        ps::generated(n, identity) | ps::map(noisy) | ps::shuffle(ps::seed(seed)) | ps::skip(draw.below(5));
    const unsigned workers = static_cast<unsigned>(draw.below(4)),
                   others = static_cast<unsigned>(draw.below(4));
    const std::size_t stride = 1 + static_cast<std::size_t>(draw.below(4));
    const auto check = [&](const auto& plan) {
      check_all_stops(plan | ps::workers(workers) | ps::prefetch(1 + draw.below(6)),
                      plan | ps::workers(others) | ps::prefetch(1), 2, stride);
    };
    switch (draw.below(6)) {
      case 0:
        check(start | ps::take(draw.below(100)) | ps::shard(rank, world) | ps::batch(b, policy));
        break;
      case 1:
        check(start | ps::shuffle_buffer(capacity, ps::seed(seed)) | ps::shard(rank, world) |
              ps::batch(b, policy));
        break;
      case 2:
        check(start | ps::shard(rank, world) | ps::shuffle_buffer(capacity, ps::seed(seed)) |
              ps::batch(b, policy));
        break;
      case 3:
        check(start | ps::repeat(1 + draw.below(3)) | ps::filter(keep) | ps::batch(b, policy));
        break;
      case 4:
        if (n > 20)
          check(start | ps::filter(keep) | ps::shard(rank, world) | ps::batch(b) | ps::steps(steps));
        break;
      default:
        check(start | ps::shard(rank, world) | ps::filter(keep) | ps::skip(draw.below(4)));
        break;
    }
  }
}

namespace {

/// The facts of a cut by cost on one of two ranks: sample i of 60 costs 1 + i % 4, a batch 6 at most.
ps::feed_facts uneven_facts(std::uint64_t maximum = 6) {
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return 1 + i % 4; };
  const auto plan = ps::generated(60, identity) | ps::shuffle(ps::seed(3)) | ps::shard(1, 2) |
                    ps::batch_by(cost, maximum, ps::tail::drop);
  return ps::make_feed_facts(plan, ps::make_sample_orders(plan));
}

}  // namespace

TEST_CASE("run/feed: if batches have no fixed number of samples, copies agree, also across epochs") {
  const ps::feed_facts facts = uneven_facts();
  ps::feed leading(facts), trailing = leading;
  leading.limit(3);
  std::vector<std::uint64_t> steps(3, 0);
  ps::placement p;
  while (leading.more()) {
    REQUIRE(leading.ready());
    leading.prepare(p, 5);
    REQUIRE(p.batches.size() == 1);
    const ps::batch_rows& batch = p.batches[0];
    CHECK(batch.delivered == ps::position{trailing.epoch(), trailing.step()});
    CHECK(p.epoch == batch.delivered.epoch);
    const ps::any_epoch_cut now = facts.uneven.bind(p.epoch);
    CHECK(trailing.samples_before() == now.before(trailing.step()));
    CHECK(batch.global == now.count(trailing.step()));
    CHECK(batch.valid == batch.slots);
    CHECK(p.slots == batch.slots);
    CHECK(p.low == p.index(0));
    CHECK(p.high == p.low + batch.valid);
    CHECK_FALSE(trailing.at_end());
    CHECK(trailing.steps_per_epoch() == now.steps());
    ++steps[static_cast<std::size_t>(p.epoch)];

    ps::state s;  // a third feed resumes there from a state
    s.epoch = trailing.epoch();
    s.step = trailing.step();
    s.ordinal = trailing.samples_before();
    s.world = 2;
    ps::feed third(facts);
    CHECK(third.wrong_with(s).empty());
    REQUIRE(third.step_of(s) == s.step);
    third.seek(s.epoch, s.step);
    CHECK(third.upstream() == trailing.upstream());
    ++s.ordinal;
    CHECK_FALSE(third.step_of(s));

    trailing.advance();
    CHECK(trailing.latest_steps() == now.steps());
  }
  for (std::uint64_t e = 0; e < 3; ++e)
    CHECK(steps[static_cast<std::size_t>(e)] == facts.uneven.bind(e).steps());
  CHECK(leading.epoch() == 3);
  CHECK(trailing.epoch() == 3);
  CHECK(trailing.samples_before() == 0);
}

TEST_CASE("run/feed: a failing step does not move the feed") {
  ps::feed at(uneven_facts(3));  // one sample costs 4
  CHECK_THROWS_AS(at.check_epoch(), ps::error);
  ps::placement p;
  std::uint64_t made = 0;
  while (at.ready()) {
    at.prepare(p, 1);
    ++made;
  }
  CHECK(at.more());
  CHECK(at.step() == made);
  for (int again = 0; again < 2; ++again) CHECK_THROWS_AS(at.prepare(p, 1), ps::error);
  CHECK(at.step() == made);
  CHECK(at.epoch() == 0);
}

}  // namespace feed_test
