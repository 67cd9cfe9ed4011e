// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/inspection/prove.hpp>

#include <penstock/order/class_balanced.hpp>
#include <penstock/order/compat/distributed_sampler.hpp>
#include <penstock/order/compat/mosaic.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/split_by_key.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/take.hpp>
#include <penstock/order/weighted.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/order_input.hpp"
#include "support/test_data.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace prove_test {

namespace ps = penstock;

namespace {

constexpr auto identity = [](std::uint64_t i) { return i; };

std::vector<std::uint64_t> uneven_starts(std::uint64_t shards) {
  std::vector<std::uint64_t> starts{0};
  for (std::uint64_t i = 0; i < shards; ++i) starts.push_back(starts.back() + ps::mix64(i) % 40);
  return starts;
}

auto shards_of(std::uint64_t count) {
  const auto starts = uneven_starts(count);
  return ps::generated(starts.back(), identity, starts);
}

const std::vector<ps::topology> many{{1, 1}, {2, 8}, {3, 5}, {8, 8}, {7, 1}, {1, 64}};

/// An order with a defect that the prover must find.
template <int How>
struct wrong_order {
  struct bound {
    std::uint64_t epoch = 0, n = 0;
    [[nodiscard]] ps::position operator()(std::uint64_t index) const {
      if (How == 0 && index == 5) return {epoch, 4};      // a sample twice
      if (How == 1 && index == 5) return {epoch, n + 3};  // no sample at all
      return {epoch, index};
    }
  };
  std::uint64_t n;
  [[nodiscard]] std::uint64_t size() const { return n; }
  [[nodiscard]] ps::order_input output() const { return {n, nullptr}; }
  [[nodiscard]] bound bind(std::uint64_t epoch) const { return {epoch, n}; }
  [[nodiscard]] std::optional<ps::position> position_of(ps::position at) const {
    if (How == 2) return ps::position{at.epoch, at.index + 1};  // no inverse
    return at;
  }
};
template <int How>
struct wrong_stage {
  using penstock_part = ps::order_tag;
  static constexpr std::string_view stage_name = "wrong";
  [[nodiscard]] wrong_order<How> make(ps::order_input in) const { return {in.size}; }
  [[nodiscard]] std::string describe() const { return "wrong"; }
};

}  // namespace

TEST_CASE("inspection/prove: plans that keep their guarantees") {
  ps::proof_options options{.epochs = 3, .stops = {0, 1, 7, 1'000'000}, .threads = 2};
  const auto holds = [&](const auto& plan) {
    const ps::proof found = ps::prove(plan, many, options);
    INFO(to_string(found));
    CHECK(found.holds());
    for (const auto& t : found.topologies) {
      CHECK(t.steps == found.topologies[0].steps);
      CHECK(t.delivered + t.dropped == found.positions);
      CHECK(t.max_shards <= found.shards);
      CHECK(t.min_shards <= t.max_shards);
    }
    return found;
  };
  const auto source = shards_of(50);
  const std::uint64_t n = source.size();
  for (const auto policy : {ps::tail::keep, ps::tail::drop, ps::tail::pad}) {
    const ps::proof found = holds(source | ps::shuffle(ps::seed(1)) | ps::global_batch(64, policy));
    CHECK(found.positions == n);
    CHECK(found.left_out == 0);
    CHECK(found.shards == 50);
    CHECK(found.topologies[0].dropped == (policy == ps::tail::drop ? n % 64 : 0));
    CHECK(found.topologies[0].padded == (policy == ps::tail::pad ? 64 - n % 64 : 0));
    CHECK(found.topologies[0].sum == 48);  // a single node reads everything; two shards are empty
    holds(source | ps::shuffle(ps::seed(1), ps::window(4), ps::lanes(16)) | ps::shard(0, 4) |
          ps::batch(16, policy));
  }
  CHECK(holds(source | ps::skip(5) | ps::take(100) | ps::shuffle(ps::seed(3)) | ps::global_batch(64))
            .left_out == n - 100);
  holds(source | ps::shuffle(ps::seed(3)) | ps::repeat(3) | ps::global_batch(64));
  holds(source | ps::shuffle_buffer(20) | ps::shard(0, 1) | ps::global_batch(64));
  holds(source | ps::global_batch(64) | ps::take(3));
  holds(ps::generated(0, identity) | ps::global_batch(64));
  holds(ps::generated(1, identity) | ps::shuffle(ps::seed(1)) | ps::global_batch(64));

  options.max_positions = 10;
  options.looks = 2000;
  CHECK(holds(source | ps::shuffle(ps::seed(1)) | ps::global_batch(64)).sampled);
  options.epochs = 1;
  CHECK(holds(source | ps::shuffle(ps::seed(3)) | ps::repeat() | ps::global_batch(64)).sampled);
}

TEST_CASE("inspection/prove: parts of a dataset keep them too, and repeat samples only if declared") {
  std::vector<int> labels;
  for (int i = 0; i < 5000; ++i) labels.push_back(i * i % 11);
  const ps::sample_list label(labels);
  const auto source = ps::generated(5000, identity);
  const auto holds = [&](const auto& stage) {
    const ps::proof found =
        ps::prove(source | stage | ps::global_batch(64), many, {.epochs = 3, .threads = 2});
    INFO(to_string(found));
    CHECK(found.holds());
    return found;
  };
  CHECK(holds(ps::split(0.9, ps::seed(7))).left_out == 500);
  CHECK(holds(ps::split(0.9, ps::seed(7)).complement()).left_out == 4500);
  CHECK(holds(ps::fold(1, 5, ps::seed(7))).left_out == 4000);
  const auto some = ps::subset(label, ps::one_of({1, 3}));
  CHECK(holds(some).left_out == 5000 - some.size());
  const auto groups = ps::split_by_key(label, 0.5, ps::seed(1));
  CHECK(holds(groups).left_out == 5000 - groups.size());
  CHECK(holds(ps::class_balanced(label, ps::seed(1))).left_out == 0);
  CHECK(holds(ps::class_balanced(label, ps::seed(1), ps::per_class::smallest)).left_out != 0);
  CHECK(holds(ps::weighted(label, ps::seed(1))).left_out != 0);
}

TEST_CASE("inspection/prove: samples that an order repeats to fill up are padding") {
  const auto holds = [&](const auto& source, const auto&... stages) {
    const ps::proof found =
        ps::prove((source | ... | stages), many, {.epochs = 2, .stops = {0, 1, 2}, .threads = 2});
    INFO(to_string(found));
    CHECK(found.holds());
    CHECK(found.left_out == 0);
    return found;
  };
  const auto hundred = ps::generated(100, identity);
  for (const bool shuffle : {false, true}) {
    const auto torch = ps::distributed_sampler({.num_replicas = 7, .shuffle = shuffle, .seed = 1});
    const ps::proof kept = holds(hundred, torch, ps::global_batch(64));
    CHECK(kept.positions == 105);
    CHECK(kept.pads == 5);
    CHECK_THAT(to_string(kept), penstock_test::contains("5 positions are padding"));
    for (const auto& t : kept.topologies) {
      CHECK(t.delivered == 100);
      CHECK(t.padded == 5);
      CHECK(t.dropped == 0);
    }
    const ps::proof padded = holds(hundred, torch, ps::global_batch(64, ps::tail::pad));
    CHECK(padded.topologies[0].delivered == 100);
    CHECK(padded.topologies[0].padded == 5 + 128 - 105);
    // Dropping the last step drops the padding.
    const ps::proof dropped = holds(hundred, torch, ps::global_batch(64, ps::tail::drop));
    CHECK(dropped.topologies[0].delivered == 64);
    CHECK(dropped.topologies[0].padded == 0);
    CHECK(dropped.topologies[0].dropped == 41);
    // Padding twice per epoch, and with a later stage that leaves only the second epoch.
    CHECK(holds(hundred, torch, ps::repeat(2), ps::global_batch(64)).pads == 10);
    const ps::proof rest = ps::prove(hundred | torch | ps::skip(5) | ps::global_batch(64), many);
    CHECK(rest.holds());
    CHECK(rest.left_out == 0);
    CHECK(rest.pads == 0);
    CHECK(ps::prove(hundred | torch | ps::skip(8) | ps::global_batch(64), many).left_out == 3);
  }
  CHECK(holds(ps::generated(98, identity), ps::distributed_sampler({.num_replicas = 7}), ps::global_batch(64))
            .pads == 0);
  CHECK(holds(ps::generated(3, identity), ps::distributed_sampler({.num_replicas = 8}), ps::global_batch(64))
            .pads == 5);

  for (const std::uint64_t samples : std::array<std::uint64_t, 7>{1, 2, 7, 50, 64, 101, 1000})
    for (const auto& [canonical, physical, ranks] : {std::array<std::uint64_t, 3>{1, 1, 1},
                                                     {1, 1, 8},
                                                     {2, 2, 3},
                                                     {4, 2, 5},
                                                     {2, 4, 3},
                                                     {8, 1, 4},
                                                     {1, 4, 8}}) {
      for (const bool shuffle : {false, true}) {
        const auto streaming = ps::mosaic({.num_canonical_nodes = canonical,
                                           .physical_nodes = physical,
                                           .ranks_per_node = ranks,
                                           .shuffle = shuffle && samples >= canonical});
        INFO(samples << " samples, " << canonical << ' ' << physical << ' ' << ranks);
        const auto plan = ps::generated(samples, identity) | streaming | ps::global_batch(64);
        try {
          static_cast<void>(plan.open());
        } catch (const ps::error&) {
          CHECK(samples < canonical * physical * ranks);  // too few samples, as in Streaming
          continue;
        }
        const ps::proof found = ps::prove(plan, many);
        INFO(to_string(found));
        CHECK(found.holds());
        CHECK(found.left_out == 0);
        CHECK(found.pads == found.positions - samples);
      }
    }
}

TEST_CASE("inspection/prove: parts of the work report when they are done, and together find everything") {
  const auto plan = shards_of(50) | ps::shuffle(ps::seed(1)) | ps::global_batch(64);
  const ps::proof_options all{.epochs = 2, .stops = {0, 3}, .threads = 2};
  const auto line = [](const ps::proof_part& one) {
    const ps::topology_proof& t = one.found;
    return std::to_string(one.epoch) + ": " + std::to_string(one.number) + ", " +
           std::to_string(t.shape.nodes) + " x " + std::to_string(t.shape.ranks_per_node) + ' ' +
           std::to_string(t.steps) + ' ' + std::to_string(t.sum) + " of " +
           std::to_string(one.whole.positions);
  };
  std::multiset<std::string> whole, parts;
  static_cast<void>(ps::prove(plan, many, all, [&](const ps::proof_part& one) {
    CHECK(one.violations.empty());
    whole.insert(line(one));
  }));
  CHECK(whole.size() == 2 * many.size());
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    ps::proof_options mine = all;
    for (std::uint64_t i = rank; i < many.size(); i += 4) mine.only.push_back(i);
    const ps::proof found =
        ps::prove(plan, many, mine, [&](const ps::proof_part& one) { parts.insert(line(one)); });
    CHECK(found.holds());
    CHECK(found.topologies.size() == mine.only.size());
    CHECK(found.topologies[0].shape.ranks() == many[static_cast<std::size_t>(rank)].ranks());
  }
  CHECK(parts == whole);
  CHECK_THROWS_WITH(ps::prove(plan, many, {.only = {6}}), penstock_test::contains("no topology 6 among 6"));
  CHECK_THROWS_WITH(
      ps::prove(plan, many, all, [](const ps::proof_part&) { throw std::runtime_error("the disk is full"); }),
      penstock_test::contains("the disk is full"));

  // A defect of the order shows in every topology.
  std::size_t told = 0;
  const ps::proof broken =
      ps::prove(ps::generated(100, identity) | wrong_stage<0>() | ps::global_batch(64), many, {.threads = 2},
                [&](const ps::proof_part& one) { told += one.violations.size(); });
  CHECK(broken.violations.size() == 1);
  CHECK(told == many.size());
}

TEST_CASE("inspection/prove: lanes keep a node within its part of the shards") {
  const auto source = ps::generated(64'000, identity, [] {
    std::vector<std::uint64_t> starts;
    for (std::uint64_t s = 0; s <= 640; ++s) starts.push_back(s * 100);
    return starts;
  }());
  const std::vector<ps::topology> eight{{8, 8}};
  const auto near = ps::prove(
      source | ps::shuffle(ps::seed(1), ps::window(4), ps::lanes(64)) | ps::global_batch(512), eight);
  const auto far = ps::prove(source | ps::shuffle(ps::seed(1), ps::window(4)) | ps::global_batch(512), eight);
  INFO(to_string(near) << to_string(far));
  CHECK(near.topologies[0].max_shards <= 640 / 8 * 11 / 10);
  CHECK(far.topologies[0].min_shards > 500);
}

TEST_CASE("inspection/prove: defects are found") {
  const auto source = ps::generated(100, identity);
  const auto broken = [&](const auto& plan, const char* why) {
    const ps::proof found = ps::prove(plan, many);
    CHECK_FALSE(found.holds());
    CHECK_THAT(to_string(found), penstock_test::contains(why));
    CHECK_THAT(to_string(found), penstock_test::contains("does not hold"));
  };
  broken(source | wrong_stage<0>() | ps::global_batch(64), "sample 4 is at position 5 and at an earlier one");
  broken(source | wrong_stage<1>() | ps::global_batch(64), "position 5 gives sample 103 of 100");
  broken(source | wrong_stage<2>() | ps::global_batch(64), "whose inverse is another position");
  const ps::proof again = ps::prove(source | ps::global_batch(64) | ps::repeat(2), many);
  CHECK(again.holds());

  CHECK_THROWS_WITH(ps::prove(source | ps::global_batch(63), many),
                    penstock_test::contains("no sample for each of 64 ranks"));
  CHECK_THROWS_WITH(ps::prove(source | ps::global_batch(64), std::vector<ps::topology>{}),
                    penstock_test::contains("no topology to prove"));
  CHECK_THROWS_WITH(ps::prove(source | ps::global_batch(64), many, {.epochs = 0}),
                    penstock_test::contains("there is no epoch to prove"));
  CHECK_THROWS_WITH(
      ps::prove(source | ps::shuffle_buffer(5) | ps::global_batch(64), many, {.max_positions = 5}),
      penstock_test::contains("cannot be proved"));
}

TEST_CASE("inspection/prove: orders and batches that mix or repeat epochs") {
  const std::vector<ps::topology> few{{1, 1}, {1, 3}};
  const auto source = ps::generated(10, identity);
  const ps::proof_options from_second{.first_epoch = 1, .epochs = 2, .stops = {0, 3, 100}, .threads = 2};
  const auto mixed =
      prove(source | ps::repeat(3) | ps::shuffle(ps::seed(7)) | ps::global_batch(4), few, from_second);
  INFO(to_string(mixed));
  CHECK(mixed.holds());
  CHECK(mixed.left_out == 0);
  CHECK(mixed.topologies[1].delivered == 30);

  for (const bool sampled : {false, true}) {
    INFO("sampled " << sampled);
    const ps::proof_options options{.max_positions = sampled ? 5u : 100u, .looks = 100};
    const auto again = prove(source | ps::global_batch(4, ps::tail::drop) | ps::repeat(2), few, options);
    CHECK(again.holds());
    CHECK(again.topologies[0].delivered == 16);
    CHECK(again.topologies[0].dropped == 2);
    const auto passes =
        prove(source | ps::shuffle(ps::seed(1)) | ps::global_batch(4) | ps::steps(7), few, options);
    CHECK(passes.holds());
    CHECK(passes.topologies[1].delivered == 24);
    CHECK(passes.topologies[1].dropped == 0);
    const auto part =
        prove(source | ps::shuffle(ps::seed(1)) | ps::global_batch(4) | ps::take(2), few, options);
    CHECK(part.topologies[0].delivered == 8);
    CHECK(part.topologies[0].dropped == 2);
  }
}

TEST_CASE("inspection/prove: a few positions of very many samples need little memory") {
  const std::vector<ps::topology> few{{1, 1}, {2, 3}};
  const auto source = ps::generated(std::uint64_t{1} << 60, identity);
  const auto found = prove(source | ps::shuffle(ps::seed(7)) | ps::take(1000) | ps::global_batch(64), few);
  CHECK(found.holds());
  CHECK(found.left_out == (std::uint64_t{1} << 60) - 1000);
  const auto twice = prove(source | ps::take(1000) | wrong_stage<0>{} | ps::global_batch(64), few);
  REQUIRE(twice.violations.size() == 1);
  CHECK(twice.violations[0] == "epoch 0: sample 4 is at two positions");
}

TEST_CASE("inspection/prove: topologies whose ranks cannot be counted") {
  const auto plan = ps::generated(10, identity) | ps::global_batch(4);
  const std::vector<ps::topology> wraps{{(std::uint64_t{1} << 63) + 1, 2}};
  CHECK_THROWS_WITH(prove(plan, wraps), penstock_test::contains("each of 9223372036854775809 ranks"));
}

}  // namespace prove_test
