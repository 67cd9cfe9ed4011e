// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/bucket_by.hpp>

#include <penstock/core/random.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/inspection/consumed.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/inspection/describe.hpp>
#include <penstock/inspection/ledger_proof.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/require.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/cut_batches.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace bucket_by_test {

namespace ps = penstock;
using namespace cut_batches;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

const ps::bucket_edges edges{4, 9, 20};
std::uint64_t bucket_of(std::uint64_t sample) {
  const std::uint64_t n = length(sample);
  return n <= 4 ? 0 : n <= 9 ? 1 : n <= 20 ? 2 : 3;
}

/// The samples a rank gets of the rest of an epoch, batch by batch.
template <class Run>
batches rest_of(Run& run, std::uint64_t epoch) {
  batches all;
  for (auto&& b : run.epoch(epoch)) all.push_back(samples_of(b));
  return all;
}
/// The steps of an epoch on so many ranks, computed the slow way from its samples in order: those that are
/// full, and then those that are left, bucket by bucket.
std::pair<batches, batches> cut_slowly(const numbers& samples, std::uint64_t tokens, std::uint64_t most,
                                       std::uint64_t ranks) {
  batches full, open(4);
  const auto fits = [&](const numbers& step) {
    std::uint64_t longest = 0;
    for (const std::uint64_t sample : step) longest = std::max(longest, length(sample));
    const std::uint64_t each = (step.size() + ranks - 1) / ranks;
    return each <= most && each * longest <= tokens;
  };
  for (const std::uint64_t sample : samples) {
    numbers& step = open[bucket_of(sample)];
    step.push_back(sample);
    if (!fits(step)) {
      step.pop_back();
      full.push_back(std::exchange(step, {sample}));
    }
    numbers more = step;
    more.push_back(sample);
    if (!fits(more)) full.push_back(std::exchange(step, {}));
  }
  std::erase_if(open, [](const numbers& step) { return step.empty(); });
  return {full, open};
}

}  // namespace

TEST_CASE("stage/bucket_by: each batch is of one bucket, full, and in the order of the epoch") {
  const auto source = ps::generated(700, same) | ps::shuffle(ps::seed(3));
  for (const std::uint64_t epoch : {0u, 2u}) {
    auto [full, left] = cut_slowly(in_order(source, epoch), 90, 8, 1);
    const auto plan = source | ps::bucket_by(length, edges, {.max_tokens = 90, .max_samples = 8});
    const batches mine = got(plan | ps::workers(0), epoch);
    REQUIRE(mine.size() == full.size() + left.size());
    CHECK(batches(mine.end() - static_cast<std::ptrdiff_t>(left.size()), mine.end()) == left);
    batches begun(mine.begin(), mine.begin() + static_cast<std::ptrdiff_t>(full.size()));
    CHECK(begun != full);  // in another order
    std::vector<std::uint64_t> buckets;
    for (const numbers& b : begun) buckets.push_back(bucket_of(b.front()));
    CHECK_FALSE(std::is_sorted(buckets.begin(), buckets.end()));
    std::sort(begun.begin(), begun.end());
    std::sort(full.begin(), full.end());
    CHECK(begun == full);
    for (const unsigned workers : {1u, 4u}) CHECK(got(plan | ps::workers(workers), epoch) == mine);
    CHECK(got(source | ps::bucket_by(length, edges, {.max_tokens = 90, .max_samples = 8, .seed = 4}),
              epoch) != mine);
  }
}

TEST_CASE("stage/bucket_by: steps are permuted in windows") {
  const auto source = ps::generated(4000, same) | ps::shuffle(ps::seed(3));
  const auto first_of = [&](std::uint64_t window) {
    const numbers order = in_order(source, 0);
    const batches mine = got(source | ps::bucket_by(length, edges, {.max_samples = 10, .window = window}));
    std::vector<std::uint64_t> places;
    for (const numbers& b : mine)
      places.push_back(
          static_cast<std::uint64_t>(std::find(order.begin(), order.end(), b.back()) - order.begin()));
    return places;
  };
  const std::vector<std::uint64_t> alone = first_of(1), ten = first_of(10), all = first_of(0);
  CHECK(std::is_sorted(alone.begin(), alone.end() - 4));  // the last of a step's samples makes it full
  for (std::size_t w = 0; w + 10 < alone.size() - 4; w += 10) {
    const auto sorted = [w](std::vector<std::uint64_t> of) {
      of = {of.begin() + static_cast<std::ptrdiff_t>(w), of.begin() + static_cast<std::ptrdiff_t>(w + 10)};
      std::sort(of.begin(), of.end());
      return of;
    };
    CHECK(sorted(ten) == sorted(alone));
    CHECK(sorted(all) != sorted(alone));
  }
  CHECK(ten != alone);
}

namespace {

/// A random plan: how it is cut.
struct random_plan {
  std::uint64_t samples, world, longest;
  bool found, repeated;
  std::vector<std::uint64_t> edges;
  ps::bucket_options limits;
  ps::tail at_end;

  explicit random_plan(ps::rng& random)
      : samples(random.below(400)),
        world(1 + random.below(12)),
        longest(1 + random.below(random.below(2) == 0 ? 3 : 300)),
        found(random.below(2) == 0),
        repeated(random.below(4) == 0),
        limits{.seed = random(), .window = random.below(20)},
        at_end(random.below(2) == 0 ? ps::tail::keep : ps::tail::drop) {
    for (std::uint64_t edge = random.below(longest + 1); edges.size() < 1 + random.below(12);
         edge += 1 + random.below(longest / 3 + 1))
      edges.push_back(edge);
    const std::uint64_t which = random.below(3);
    if (which != 0) limits.max_samples = 1 + random.below(30);
    if (random.below(3) == 0) limits.quadratic = 1 + random.below(100);
    if (which != 1) limits.max_tokens = tokens(longest) + random.below(1000);
  }
  [[nodiscard]] std::uint64_t tokens(std::uint64_t n) const {
    return limits.quadratic == 0 ? n : n + n * n / limits.quadratic;
  }
};

}  // namespace

TEST_CASE("stage/bucket_by: random plans lose no sample, exceed no limit, and resume at any step") {
  ps::rng random(16, 0, 0);
  std::uint64_t resumed = 0, elsewhere = 0, dropped = 0;
  for (int i = 0; i < 300; ++i) {
    const random_plan p(random);
    const std::uint64_t salt = random();
    const auto length_of = [&p, salt](std::uint64_t s) -> std::uint64_t {
      return ps::mix64(s ^ salt) % (p.longest + 1);
    };
    const bool global = random.below(2) == 0;
    const std::uint64_t n = p.samples * (p.repeated ? 2 : 1);
    const auto with_plan = [&](std::uint64_t rank, std::uint64_t world, const auto& use) {
      const auto with = [&](const auto& source) {
        const ps::bucket_edges by =
            p.found ? ps::bucket_edges(1 + p.edges.size()) : ps::bucket_edges(p.edges);
        const auto share =
            source | ps::shuffle(ps::seed(salt)) | ps::shard(rank, world) | ps::workers(0) | ps::allow_empty;
        if (global)
          use(share | ps::global_bucket_by(length_of, by, p.limits, p.at_end));
        else
          use(share | ps::bucket_by(length_of, by, p.limits, p.at_end));
      };
      if (p.repeated)
        with(ps::generated(p.samples, same) | ps::repeat(2));
      else
        with(ps::generated(p.samples, same));
    };
    const auto each_rank = [&](std::uint64_t world, const ps::state* from) {
      std::vector<batches> all;
      for (std::uint64_t rank = 0; rank < world; ++rank)
        with_plan(rank, world, [&](const auto& plan) {
          auto run = from == nullptr ? plan.open() : plan.open(*from);
          all.push_back(rest_of(run, 1));
        });
      return all;
    };
    INFO("plan " << i << ", " << n << " samples on " << p.world << " ranks");
    const std::vector<batches> ranks = each_rank(p.world, nullptr);
    const std::size_t steps = ranks.front().size();
    const std::uint64_t limit_ranks = global ? 1 : p.world;
    numbers seen;
    std::vector<numbers> of_step(steps);
    for (const batches& mine : ranks) REQUIRE(mine.size() == steps);
    std::vector<std::uint64_t> low(256, ~std::uint64_t{0}), high(256, 0);
    for (std::size_t s = 0; s < steps; ++s) {
      std::uint64_t longest = 0, shortest = ~std::uint64_t{0}, most = 0, least = ~std::uint64_t{0};
      for (const batches& mine : ranks) {
        of_step[s].insert(of_step[s].end(), mine[s].begin(), mine[s].end());
        most = std::max<std::uint64_t>(most, mine[s].size());
        least = std::min<std::uint64_t>(least, mine[s].size());
      }
      REQUIRE(!of_step[s].empty());
      for (const std::uint64_t sample : of_step[s]) {
        longest = std::max(longest, length_of(sample));
        shortest = std::min(shortest, length_of(sample));
      }
      if (!p.found)  // one bucket
        for (const std::uint64_t edge : p.edges) REQUIRE((shortest <= edge) == (longest <= edge));
      REQUIRE(most - least <= 1);
      const std::uint64_t each = (of_step[s].size() + limit_ranks - 1) / limit_ranks;
      if (p.limits.max_samples != 0) REQUIRE(each <= p.limits.max_samples);
      if (p.limits.max_tokens.fixed() != 0) REQUIRE(each * p.tokens(longest) <= p.limits.max_tokens.fixed());
      seen.insert(seen.end(), of_step[s].begin(), of_step[s].end());
    }
    std::sort(seen.begin(), seen.end());
    if (p.at_end == ps::tail::keep) {
      numbers expected;
      for (std::uint64_t s = 0; s < n; ++s) expected.push_back(s / (p.repeated ? 2 : 1));
      REQUIRE(seen == expected);
    } else if (!p.repeated) {
      REQUIRE(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
      dropped += n - seen.size();
    }
    if (steps < 2) continue;

    const std::uint64_t stop = 1 + random.below(steps - 1);
    ps::state where;
    with_plan(random.below(p.world), p.world, [&](const auto& plan) {
      where = ps::state_from_string(to_string(state_after(plan, stop, 1)));
    });
    REQUIRE(where.step == stop);
    const std::vector<batches> again = each_rank(p.world, &where);
    for (std::size_t r = 0; r < ranks.size(); ++r)
      REQUIRE(again[r] == batches(ranks[r].begin() + static_cast<std::ptrdiff_t>(stop), ranks[r].end()));
    ++resumed;
    const std::uint64_t world = 1 + random.below(12);
    if (world == p.world) continue;
    if (!global) {
      CHECK_THAT(error_of([&] { (void)each_rank(world, &where); }),
                 contains("resume on another number of ranks"));
      continue;
    }
    const std::vector<batches> other = each_rank(world, &where);
    for (std::size_t s = static_cast<std::size_t>(stop); s < steps; ++s) {
      numbers step;
      for (const batches& mine : other) {
        REQUIRE(mine.size() == steps - stop);
        const numbers& b = mine[s - static_cast<std::size_t>(stop)];
        step.insert(step.end(), b.begin(), b.end());
      }
      REQUIRE(step == of_step[s]);
    }
    ++elsewhere;
  }
  CHECK(resumed > 200);
  CHECK(elsewhere > 80);
  CHECK(dropped > 1000);
}

TEST_CASE("stage/bucket_by: ranks have the same bucket in each step, with limits for each of them") {
  const auto source = ps::generated(500, same) | ps::shuffle(ps::seed(11));
  const auto [full, left] = cut_slowly(in_order(source, 0), 60, 7, 3);
  for (const ps::tail at_end : {ps::tail::keep, ps::tail::drop}) {
    std::vector<batches> ranks;
    for (std::uint64_t rank = 0; rank < 3; ++rank)
      ranks.push_back(got(source | ps::shard(rank, 3) |
                          ps::bucket_by(length, edges, {.max_tokens = 60, .max_samples = 7}, at_end) |
                          ps::workers(2)));
    batches steps;
    for (std::size_t s = 0; s < ranks[0].size(); ++s) {
      numbers& step = steps.emplace_back(ranks[0][s]);
      for (std::size_t r = 1; r < 3; ++r) step.insert(step.end(), ranks[r][s].begin(), ranks[r][s].end());
    }
    batches expected = full;
    if (at_end == ps::tail::keep) expected.insert(expected.end(), left.begin(), left.end());
    std::sort(steps.begin(), steps.end());
    std::sort(expected.begin(), expected.end());
    CHECK(steps == expected);
  }
}

TEST_CASE("stage/bucket_by: a run resumes from a state after every step, across epochs") {
  const auto source =
      ps::generated(90, engine_test::identity) | ps::shuffle(ps::seed(5)) | ps::map(engine_test::noisy);
  const auto plan = source | ps::bucket_by(length, 4, {.max_tokens = 60});
  engine_test::check_all_stops(plan | ps::workers(2), plan | ps::workers(0), 3);
  const auto second = source | ps::shard(1, 3) | ps::global_bucket_by(length, edges, {.max_samples = 12});
  engine_test::check_all_stops(second | ps::workers(2), second | ps::workers(3) | ps::prefetch(40), 3);
  const auto dropping = source | ps::repeat(2) | ps::shard(1, 2) |
                        ps::bucket_by(length, edges, {.max_tokens = 60}, ps::tail::drop);
  engine_test::check_all_stops(dropping | ps::workers(1), dropping | ps::workers(1), 2);
}

TEST_CASE("stage/bucket_by: a state of other batches is refused") {
  const auto source = ps::generated(400, same);
  const ps::state stopped = state_after(source | ps::bucket_by(length, edges, {.max_tokens = 50}), 3);
  CHECK_THAT(
      error_of([&] { (void)(source | ps::bucket_by(length, edges, {.max_tokens = 51})).open(stopped); }),
      contains("it has bucket_by(edges 4, 9, 20, max_tokens 50, tail keep) where this plan has "
               "bucket_by(edges 4, 9, 20, max_tokens 51, tail keep)"));
  CHECK_THAT(error_of([&] {
               (void)(source | ps::bucket_by(length, {4, 9}, {.max_tokens = 50})).open(stopped);
             }),
             contains("edges 4, 9, max_tokens"));
  CHECK_THAT(error_of([&] {
               (void)(source | ps::global_bucket_by(length, edges, {.max_tokens = 50})).open(stopped);
             }),
             contains("global_bucket_by"));
  const auto other = [](std::uint64_t i) -> std::uint64_t { return i % 5 + 1; };
  CHECK_THAT(
      error_of([&] { (void)(source | ps::bucket_by(other, edges, {.max_tokens = 50})).open(stopped); }),
      contains("starts there: the batches are cut differently now"));
}

TEST_CASE("stage/bucket_by: edges are found from the lengths that the epoch has") {
  const penstock_test::temp_dir folder;
  const auto source = ps::generated(1000, same);
  const auto linear = [](std::uint64_t i) { return i; };
  const auto index = ps::derive(source, "length", linear, folder.path().string());
  const auto buckets_of = [](const auto& plan) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> found;  // shortest and longest of the larger batches
    for (const numbers& b : got(plan))
      if (b.size() > 90)
        found.emplace(*std::min_element(b.begin(), b.end()), *std::max_element(b.begin(), b.end()));
    return found;
  };
  // a quarter of the sum of 0 ... 999 is below 500, three quarters below 866
  using pairs = std::set<std::pair<std::uint64_t, std::uint64_t>>;
  const pairs expected{{0, 500}, {501, 707}, {708, 866}, {867, 999}};
  CHECK(buckets_of(source | ps::bucket_by(index, 4, {.max_samples = 1000})) == expected);
  CHECK(buckets_of(source | ps::bucket_by(linear, 4, {.max_samples = 1000})) == expected);
  const auto half = source | ps::subset(index, [](std::uint64_t n) { return n < 500; });
  CHECK(buckets_of(half | ps::bucket_by(index, 2, {.max_samples = 1000})) == pairs{{0, 353}, {354, 499}});
  CHECK(got(source | ps::bucket_by(linear, 1, {.max_samples = 1000})).size() == 1);
  CHECK_THAT(describe(source | ps::bucket_by(index, 4, {.max_samples = 9, .quadratic = 7})),
             contains("bucket_by(index 'length', 4 buckets, max_samples 9, quadratic 7, tail keep)"));
  CHECK_THAT(error_of([&] {
               (void)(ps::generated(999, same) | ps::bucket_by(index, 2, {.max_samples = 9})).open();
             }),
             contains("stage bucket_by"));
}

TEST_CASE("stage/bucket_by: wrong limits, edges and samples are one error each") {
  const auto source = ps::generated(50, same) | ps::shuffle(ps::seed(2));
  const auto cost = [](std::uint64_t i) -> std::uint64_t { return i == 17 ? 900 : 10; };
  const auto said = [&](ps::bucket_options limits) {
    return error_of([&] { (void)(source | ps::bucket_by(cost, {100}, limits)).open(); });
  };
  CHECK_THAT(
      said({.max_tokens = 800}),
      contains(
          "sample 17 counts as 900 tokens, but a batch of bucket_by holds 800 at most; raise "
          "max_tokens or max_duration, or leave the sample out with subset [stage bucket_by, position 0:8]"));
  CHECK_THAT(said({.max_tokens = 900, .quadratic = 900}), contains("sample 17 counts as 1800 tokens"));
  CHECK(said({.max_tokens = 900}).empty());
  CHECK_THAT(said({}),
             contains("has no limit for its batches; give it max_tokens, max_duration or max_samples"));
  CHECK_THAT(said({.max_samples = std::uint64_t{1} << 63}), contains("negative or absurd"));
  const auto edges_say = [](std::vector<std::uint64_t> given) {
    return error_of([&] { (void)ps::bucket_edges(std::move(given)); });
  };
  CHECK_THAT(edges_say({3, 5, 5}), contains("ascend, but 5 follows 5"));
  CHECK_THAT(edges_say({}), contains("no edges"));
  CHECK_THAT(edges_say(numbers(255, 1)), contains("1 to 255 buckets, not 256"));
  CHECK_THAT(edges_say({1, ~std::uint64_t{0}}), contains("negative or absurd"));
  CHECK_THAT(error_of([] { (void)ps::bucket_edges(0); }), contains("1 to 255 buckets, not 0"));
  CHECK_THAT(error_of([] { (void)ps::bucket_edges(256); }), contains("not 256"));
  CHECK_THAT(error_of([] { (void)ps::bucket_edges(-3); }), contains("(-3)"));
  CHECK_THAT(error_of([] { (void)ps::bucket_by(length, 3, {.max_samples = 4}, ps::tail::pad); }),
             contains("bucket_by has no fixed number of samples to pad to"));
  CHECK_THAT(
      error_of([] {
        (void)(ps::generated(5, same) | ps::repeat() | ps::bucket_by(length, 3, {.max_samples = 4})).open();
      }),
      contains("goes through an epoch before its first batch"));
}

TEST_CASE("stage/bucket_by: if only a later epoch fails, its first step is the error") {
  for (const unsigned workers : {0u, 2u}) {
    std::atomic<int> asked{0};
    const auto fails_once = [&](std::uint64_t) -> std::uint64_t {
      if (++asked == 64 + 200 + 100) throw ps::error(ps::errc::io, "no length today");
      return 1;
    };
    auto run = (ps::generated(200, same) | ps::prefetch(100) |
                ps::bucket_by(fails_once, {5}, {.max_samples = 50}) | ps::workers(workers))
                   .open();
    std::size_t seen = 0;
    const std::string said = error_of([&] {
      for (auto epoch : run.epochs(3))
        for (auto&& b : epoch) seen += b.size();
    });
    CHECK(seen == 200);
    CHECK_THAT(said,
               contains("no length today, in the length of sample 99 [stage bucket_by, position 1:99]"));
    CHECK(run.stopped());
    CHECK(run.state().epoch == 1);
  }
  const auto never = [](std::uint64_t) -> std::uint64_t { throw ps::error(ps::errc::io, "no lengths"); };
  CHECK_THAT(
      error_of([&] { (void)(ps::generated(5, same) | ps::bucket_by(never, 2, {.max_samples = 5})).open(); }),
      contains("no lengths, in the length of sample 0"));
}

TEST_CASE("stage/bucket_by: lengths are asked for once in an epoch, and a stop ends the pass") {
  std::atomic<int> asked{0};
  std::stop_source stop;
  const auto counting = [&](std::uint64_t i) {
    if (++asked == 64 + 3 * 1000 + 10) stop.request_stop();
    return length(i);
  };
  const auto plan = ps::generated(1000, same) | ps::shuffle(ps::seed(5)) | ps::prefetch(100) |
                    ps::bucket_by(counting, 5, {.max_samples = 50}) | ps::workers(2);
  auto run = plan.open(stop.get_token());
  for (auto epoch : run.epochs(4))
    for (auto&& b : epoch) CHECK(run.steps_per_epoch() > b.step());
  CHECK(run.stopped());
  CHECK(asked == 64 + 3 * 1000 + 10);  // once for the edges, for two epochs, and for a part of the third
}

TEST_CASE("stage/bucket_by: a step allocates nothing") {
  const auto by = ps::bucket_by(length, 8, {.max_samples = 10});
  auto run = (ps::generated(5000, same) | ps::shuffle(ps::seed(1)) | by | ps::workers(0)).open();
  (void)run.epochs(3);
  while (run.state().epoch == 0) CHECK(run.next());
  std::uint64_t steps = 0;
  const std::uint64_t made = penstock_test::allocations_of([&] {
    while (run.next()) ++steps;
  });
  CHECK(steps > 999);
  CHECK(made < 100);
}

TEST_CASE("stage/bucket_by: a rank without a sample of a step shows the shape of another's") {
  const auto rows = [](std::uint64_t i) {
    return std::vector<float>(static_cast<std::size_t>(3 + i % 2), 1.0f);
  };
  const auto by = ps::bucket_by([](std::uint64_t i) { return i % 2; }, {0}, {.max_samples = 2});
  std::vector<std::string> shapes;
  for (auto&& b : (ps::generated(7, rows) | ps::shard(2, 3) | by | ps::allow_empty).epoch(0))
    shapes.push_back(to_string(b.values().shape()));
  CHECK(shapes == std::vector<std::string>{"(1, 3)", "(1, 4)"});
  shapes.clear();
  for (auto&& b : (ps::generated(3, rows) | ps::shard(2, 3) | by | ps::allow_empty).epoch(0))
    shapes.push_back(to_string(b.values().shape()));
  CHECK(shapes == std::vector<std::string>{"(0, 3)", "(0, 4)"});
}

TEST_CASE("stage/bucket_by: padding to a multiple counts") {
  const auto tokens = [](std::uint64_t i) {
    return std::vector<std::int32_t>(static_cast<std::size_t>(length(i)), 1);
  };
  const auto source = ps::generated(500, tokens) | ps::shuffle(ps::seed(3));
  std::uint64_t seen = 0, fuller = 0;
  const auto padded = source | ps::bucket_by(length, 6, {.max_tokens = 256}, ps::pad_to_multiple<16>);
  for (auto&& b : padded.epoch(0)) {
    const auto texts = b.values();
    CHECK(texts.values().shape()[1] % 16 == 0);
    CHECK(texts.values().size() <= 256);
    fuller += texts.values().size() == 256 ? 1 : 0;
    seen += b.size();
  }
  CHECK(seen == 500);
  CHECK(fuller > 10);
  seen = fuller = 0;
  const auto by_cost = source | ps::batch_by(length, 256, ps::pad_to_multiple<16>);
  for (auto&& b : by_cost.epoch(0)) {
    CHECK(b.values().values().size() <= 256);
    fuller += b.values().values().size() > 200 ? 1 : 0;
    seen += b.size();
  }
  CHECK(seen == 500);
  CHECK(fuller > 10);
  CHECK_THAT(describe(by_cost), contains("limit 256 with padding to multiples of 16"));
  CHECK_THAT(describe(padded), contains("max_tokens 256, padding to multiples of 16"));
}

TEST_CASE("stage/bucket_by: prove, for_each_consumed and a ledger understand it") {
  const auto source = ps::generated(700, same) | ps::shuffle(ps::seed(7));
  const std::vector<ps::topology> shapes{{1, 1}, {1, 3}, {2, 4}, {5, 3}};
  const auto plan = source | ps::shard(1, 3) | ps::global_bucket_by(length, 5, {.max_tokens = 300});
  const ps::proof found = ps::prove(plan, shapes, {.epochs = 2, .stops = {1, 5}, .threads = 2});
  CHECK(found.holds());
  for (const ps::topology_proof& one : found.topologies) {
    CHECK(one.steps == found.topologies[0].steps);
    CHECK(one.delivered == 700);
  }
  CHECK(ps::prove(source | ps::shard(1, 3) | ps::bucket_by(length, 5, {.max_tokens = 90}, ps::tail::drop),
                  shapes)
            .holds());

  const ps::state stopped = state_after(plan, 4);
  std::uint64_t consumed = 0;
  ps::for_each_consumed(plan, stopped, [&](const ps::consumed_range& range) { consumed += range.count; });
  CHECK(consumed == stopped.ordinal);

  const penstock_test::temp_dir folder;
  const std::string ledger = (folder.path() / "bad-{rank}").string();
  const auto fails = [](std::uint64_t i) {
    if (i % 29 == 3) throw ps::error(ps::errc::format, "made to fail");
    return i;
  };
  const auto skipping = source | ps::map(fails) | ps::shard(0, 4) |
                        ps::bad_samples::skip(100, ps::bad_samples::ledger(ledger)) |
                        ps::global_bucket_by(length, 5, {.max_tokens = 300});
  for (auto&& b : skipping.epoch(0)) (void)b;
  const std::vector<ps::bad_entry> entries = ps::read_bad_ledger((folder.path() / "bad-0").string()).all;
  REQUIRE(!entries.empty());
  CHECK(ps::prove_ledger(skipping, entries).holds());
}

TEST_CASE("stage/bucket_by: keeps all guarantees, and says so") {
  const auto share = ps::generated(100, same) | ps::shuffle(ps::seed(1)) | ps::shard(0, 2);
  const auto plan = share | ps::global_bucket_by(length, 5, {.max_samples = 8}) |
                    ps::require<ps::guarantee::elastic> | ps::require<ps::guarantee::lockstep>;
  static_assert(ps::resumable<decltype(plan)> && ps::deterministic<decltype(plan)> &&
                ps::indexed<decltype(plan)>);
  CHECK_THAT(ps::describe(plan), contains("global_bucket_by(5 buckets, max_samples 8, tail keep)"));
  CHECK_THAT(ps::describe(plan), contains("keeps: indexed deterministic resumable elastic lockstep"));
}

TEST_CASE("stage/bucket_by: no samples, and samples without length") {
  CHECK(got(ps::generated(0, same) | ps::bucket_by(length, 3, {.max_tokens = 8})).empty());
  const auto nothing = [](std::uint64_t) { return std::uint64_t{0}; };
  CHECK(got(ps::generated(100, same) | ps::bucket_by(nothing, 3, {.max_tokens = 8})).size() == 1);
  CHECK(got(ps::generated(100, same) | ps::bucket_by(nothing, 3, {.max_samples = 7})).size() == 15);
}

TEST_CASE("stage/bucket_by: works with the stages that work after batch, and while a run is adjusted") {
  const auto source = ps::generated(900, same) | ps::shuffle(ps::seed(8));
  const auto plan = source | ps::bucket_by(length, 5, {.max_tokens = 80}) | ps::workers(3);
  batches expected = got(plan);
  CHECK(got(plan | ps::pin_and_copy(ps::simulated{})) == expected);
  auto run = plan.open();
  CHECK(got_while_adjusted(run) == expected);
  for (auto& b : expected)
    for (auto& x : b) x *= 2;
  const auto twice = [](auto& columns) {
    for (auto& x : columns.values()) x *= 2;
  };
  CHECK(got(plan | ps::map_batch(twice) | ps::prefetch(3)) == expected);
}

TEST_CASE("limits of a curriculum grow by the step") {
  const auto length = [](std::uint64_t i) { return 1 + i % 30; };
  const auto grows = [](ps::position at) { return 40 + 4 * at.index; };
  for (const std::uint64_t window : {std::uint64_t{1}, std::uint64_t{8}}) {
    const auto loader = ps::generated(3000,
                                      [=](std::uint64_t i) {
                                        return std::vector<std::int32_t>(ps::detail::to_size(length(i)), 1);
                                      }) |
                        ps::shuffle(ps::seed(1)) |
                        ps::bucket_by(length, 5, {.max_tokens = grows, .window = window}, ps::pad_to_longest);
    std::size_t samples = 0, fullest = 0, step = 0;
    for (auto&& b : loader.epoch(0)) {
      const std::size_t tokens = b.values().values().size();
      CHECK(tokens <= grows({0, step + window - 1}));
      // A step is as full as its own limit allows.
      fullest = std::max(fullest, tokens);
      samples += b.size();
      ++step;
    }
    CHECK(samples == 3000);
    CHECK(fullest > grows({0, step / 2}));
  }
  // A sample that no batch would have held in the beginning.
  const auto late = [](std::uint64_t i) { return i < 100 ? 10u : 100u; };
  const auto later = [](ps::position at) { return at.index < 10 ? 100u : 200u; };
  std::size_t samples = 0;
  for (auto&& b : (ps::generated(110, [](std::uint64_t) { return 1; }) |
                   ps::bucket_by(late, {150}, {.max_tokens = later, .window = 1}))
                      .epoch(0))
    samples += b.size();
  CHECK(samples == 110);
  const auto shrinks = [](ps::position at) { return at.index < 5 ? 100u : 50u; };
  CHECK_THROWS_WITH(
      (ps::generated(110, [](std::uint64_t) { return 1; }) |
       ps::bucket_by(late, {150}, {.max_tokens = shrinks, .window = 1}))
          .open(),
      Catch::Contains("sample 100 counts as 100 tokens, but a batch of bucket_by holds 50 at most"));
}

TEST_CASE("limits of a curriculum are those of an epoch") {
  const auto length = [](std::uint64_t i) { return 1 + i % 30; };
  const auto grows = [](ps::position at) { return at.epoch == 0 ? 60u : 600u; };
  const auto loader =
      ps::generated(
          300,
          [=](std::uint64_t i) { return std::vector<std::int32_t>(ps::detail::to_size(length(i)), 1); }) |
      ps::shuffle(ps::seed(1)) | ps::bucket_by(length, 5, {.max_tokens = grows}, ps::pad_to_longest);
  std::size_t batches[2] = {0, 0};
  for (const std::uint64_t epoch : {0u, 1u}) {
    std::size_t samples = 0;
    for (auto&& b : loader.epoch(epoch)) {
      CHECK(b.values().values().size() <= (epoch == 0 ? 60 : 600));
      samples += b.size();
      ++batches[epoch];
    }
    CHECK(samples == 300);
  }
  CHECK(batches[0] > 5 * batches[1]);
  const auto none = [](ps::position) { return 0u; };
  CHECK_THROWS_WITH((ps::generated(30, [](std::uint64_t) { return std::vector<int>(3); }) |
                     ps::bucket_by(length, 5, {.max_tokens = none}, ps::pad_to_longest))
                        .open(),
                    Catch::Contains("has no limit for its batches"));
}

}  // namespace bucket_by_test
