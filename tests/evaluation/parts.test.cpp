// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/evaluation/parts.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("evaluation/parts: options are gathered from any place; prefetch depends on its place") {
  const auto plan = ps::from(first_ints(4)) | ps::workers(3) | ps::prefetch(64) | ps::shuffle(ps::seed(9)) |
                    ps::batch(2) | ps::prefetch(5);
  const ps::run_options options = ps::options_of(plan);
  CHECK(options.workers == 3u);
  CHECK(options.ahead == 64);
  CHECK(options.depth == std::size_t{6});
  CHECK(options.seed == 9u);
  CHECK(ps::options_of(plan | ps::seed(1)).seed == 1u);
  CHECK_FALSE(ps::options_of(ps::from(first_ints(4)) | ps::batch(2)).workers.has_value());
}

TEST_CASE("evaluation/parts: the sequence fingerprint covers exactly what determines the sequence") {
  const auto source = ps::from(first_ints(4));
  const auto one =
      ps::sequence_fingerprint(source | ps::shuffle(ps::seed(1)) | ps::shard(0, 2) | ps::batch(4));
  CHECK(one == ps::sequence_fingerprint(source | ps::shuffle(ps::seed(1)) | ps::prefetch(9) |
                                        ps::shard(1, 4) | ps::batch(2) | ps::workers(5)));
  CHECK(one != ps::sequence_fingerprint(source | ps::shuffle(ps::seed(2)) | ps::shard(0, 2) | ps::batch(4)));
  CHECK(one != ps::sequence_fingerprint(source | ps::shuffle(ps::seed(1)) | ps::shard(0, 2) | ps::batch(5)));
  CHECK(one != ps::sequence_fingerprint(source | ps::shuffle(ps::seed(1)) | ps::skip(1) | ps::shard(0, 2) |
                                        ps::batch(4)));
  CHECK(one !=
        ps::sequence_fingerprint(source | ps::shuffle(ps::seed(1)) | ps::filter([](int) { return true; }) |
                                 ps::shard(0, 2) | ps::batch(4)));
}

TEST_CASE("evaluation/parts: random stages count, with their number and keys; other functions do not") {
  const auto source = ps::from(first_ints(4)) | ps::shuffle(ps::seed(1));
  const auto noise = [](int x, ps::rng& random) { return x + static_cast<int>(random.below(3)); };
  const auto same = [](int x) { return x; };
  const auto later = [](auto& columns, ps::rng& random) {
    for (int& x : columns.values()) x += static_cast<int>(random.below(3));
  };
  const auto flip = [](int, ps::rng& random) { return random.chance(0.5); };
  const auto of = [](const auto& p) { return ps::random_fingerprint(p); };
  CHECK(of(source | ps::map(same) | ps::batch(2)) == 0);
  CHECK(ps::sequence_fingerprint(source | ps::map(noise) | ps::batch(2)) ==
        ps::sequence_fingerprint(source | ps::batch(2)));
  CHECK(of(source | ps::map(same) | ps::map(noise) | ps::batch(2)) ==
        of(source | ps::map(noise) | ps::map(same) | ps::batch(2)));
  const std::set<std::uint64_t> all{of(source | ps::batch(2)),
                                    of(source | ps::map(noise) | ps::batch(2)),
                                    of(source | ps::map(noise) | ps::map(noise) | ps::batch(2)),
                                    of(source | ps::map(noise, ps::key("a")) | ps::batch(2)),
                                    of(source | ps::map(noise, ps::key("b")) | ps::batch(2)),
                                    of(source | ps::batch(2) | ps::map_batch(later)),
                                    of(source | ps::batch(2) | ps::map_batch(later, ps::key("a"))),
                                    of(source | ps::batch(2) | ps::map_batch(later) | ps::map_batch(later))};
  CHECK(all.size() == 8);
  CHECK(of(source | ps::filter(flip) | ps::batch(2)) == of(source | ps::map(noise) | ps::batch(2)));
  CHECK(of(source | ps::filter([](int) { return true; }) | ps::batch(2)) == 0);
  CHECK(of(source | ps::batch(2) | ps::map_batch([](auto& columns) {
             for (int& x : columns.values()) ++x;
           })) == 0);
  CHECK(ps::sequence_words(source | ps::map(noise) | ps::filter(flip) | ps::batch(2)) ==
        std::vector<std::string>{"from(4 samples in memory)", "shuffle(seed 1)", "map with random numbers",
                                 "filter with random numbers", "batch of 2 in all, tail keep", "seed(1)"});
}

TEST_CASE("evaluation/parts: a plan's type determines its way through the engine") {
  const auto source = ps::from(first_ints(4));
  static_assert(ps::plan_parts<decltype(source | ps::batch(2))>::direct);
  static_assert(
      !ps::plan_parts<decltype(source | ps::filter([](int) { return true; }) | ps::batch(2))>::direct);
  static_assert(!ps::plan_parts<decltype(source | ps::map([](int x) { return x; }))>::batched);
  CHECK(ps::world_of(source | ps::shard(1, 3) | ps::batch(2)).rank == 1);
  CHECK(ps::world_of(source | ps::batch(2)).size == 1);
}

TEST_CASE(
    "evaluation/parts: the sequence in words has a word for the data and one for each stage that matters") {
  using words = std::vector<std::string>;
  const auto source = ps::from(first_ints(4));
  CHECK(ps::sequence_words(source | ps::shuffle(ps::seed(3)) | ps::prefetch(2) |
                           ps::filter([](int) { return true; }) | ps::batch(2) | ps::workers(1)) ==
        words{"from(4 samples in memory)", "shuffle(seed 3)", "filter", "batch of 2 in all, tail keep",
              "seed(3)"});

  const auto difference = [](const words& theirs, const words& ours, bool same_data = false) {
    return ps::detail::first_difference(theirs, ours, same_data);
  };
  CHECK(difference({"a", "b"}, {"a", "b"}).empty());
  CHECK(difference({"a", "b"}, {"a", "c"}) == "it has b where this plan has c");
  CHECK(difference({"a"}, {"a", "c"}) == "it has no more stages where this plan has c");
  CHECK(difference({"a", "b | (c"}, {"a"}) == "it has b | (c where this plan has no more");
  CHECK(difference({"a", "b"}, {"x", "b"}) == "it has a where this plan has x");
  CHECK(difference({"a", "b"}, {"x", "b"}, true).empty());
  CHECK(difference({}, {}, true).empty());
}
