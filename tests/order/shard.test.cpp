// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;

static_assert(std::same_as<ps::shard_stage::penstock_part, ps::shard_tag>, "shard has a tag of its own");
static_assert(!ps::order_stage<ps::shard_stage>, "shard changes no position, so it is not an order stage");

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
  CHECK(stage.share.rank == 3);
  CHECK(stage.share.size == 8);
  CHECK(stage.describe() == "shard(rank 3 of 8)");
  ps::world here;
  here.rank = 1;
  here.size = 2;
  here.node = 1;
  here.nodes = 2;
  CHECK(ps::shard(here).share == here);
}

TEST_CASE("order/shard: a rank not below the world's size is an error with both numbers") {
  CHECK_THROWS_WITH(ps::shard(8, 8), penstock_test::contains("rank 8 is not below the world's size 8"));
  CHECK_THROWS_WITH(ps::shard(0, 0), penstock_test::contains("rank 0"));
}

TEST_CASE("order/shard: is not part of the sequence's fingerprint") {
  counting_hash h;
  ps::shard(3, 8).fingerprint(h);
  CHECK(h.added == 0);
}

TEST_CASE("order/shard: ranks have slices of a step; after filter and unbatch samples are dealt in turn") {
  using rows = std::vector<std::vector<int>>;
  std::vector<int> data(12);
  std::iota(data.begin(), data.end(), 0);
  const auto source = ps::from(data);
  const auto all = ps::filter([](int) { return true; });
  const auto pairs = ps::map([](int x) { return std::array<int, 2>{2 * x, 2 * x + 1}; }) | ps::unbatch;
  const auto of = [](const auto& sharded) {
    return penstock_test::batches_of(sharded | ps::batch(3) | ps::steps(2));
  };
  CHECK(of(source | ps::shard(0, 2)) == rows{{0, 1, 2}, {6, 7, 8}});
  CHECK(of(source | ps::shard(1, 2)) == rows{{3, 4, 5}, {9, 10, 11}});
  CHECK(of(source | all | ps::shard(0, 2)) == rows{{0, 2, 4}, {6, 8, 10}});
  CHECK(of(source | all | ps::shard(1, 2)) == rows{{1, 3, 5}, {7, 9, 11}});
  CHECK(of(source | ps::take(6) | pairs | ps::shard(0, 2)) == rows{{0, 2, 4}, {6, 8, 10}});
  CHECK(of(source | ps::take(6) | pairs | ps::shard(1, 2)) == rows{{1, 3, 5}, {7, 9, 11}});
}

TEST_CASE("order/shard: replicate makes groups of ranks that share a part") {
  for (std::uint64_t rank = 0; rank < 6; ++rank) {
    const auto stage = ps::shard(rank, 6, ps::replicate(3));
    CHECK(stage.share.rank == rank / 3);
    CHECK(stage.share.size == 2);
    CHECK(stage.share.replica == rank % 3);
    CHECK(stage.share.replicas == 3);
    ps::world here;
    here.rank = rank;
    here.size = 6;
    CHECK(ps::shard(here, ps::replicate(3)).share == here.replicated(3));
    CHECK(ps::shard(here.model_parallel(3, 2)).share.size == 1);
  }
  CHECK(ps::shard(4, 6, ps::replicate(3)).describe() == "shard(rank 1 of 2, replica 1 of 3)");
  CHECK_THROWS_WITH(ps::shard(0, 6, ps::replicate(4)), penstock_test::contains("groups of 4"));
  CHECK_THROWS_WITH(ps::shard(0, 6, ps::replicate(0)), penstock_test::contains("groups of 0"));
  CHECK_THROWS_WITH(ps::shard(6, 6, ps::replicate(2)), penstock_test::contains("rank 6 is not below"));
}

namespace {

/// The samples each process of a world consumes of the steps [from, to), and the state of its run
/// after them.
struct consumed {
  std::vector<std::vector<int>> batches;
  ps::state at;
};
consumed consume(const ps::world& part, std::uint64_t global, const ps::state* from, std::uint64_t steps) {
  std::vector<int> data(103);
  std::iota(data.begin(), data.end(), 0);
  const auto loader = ps::from(data) | ps::shuffle(ps::seed(7)) | ps::shard(part) | ps::global_batch(global);
  auto run = from != nullptr ? loader.open(*from) : loader.open();
  consumed made;
  for (auto epoch : run.epochs(2)) {
    for (auto&& b : epoch) {
      made.batches.emplace_back(b.begin(), b.end());
      if (made.batches.size() == steps) {
        made.at = run.state();
        return made;
      }
    }
  }
  made.at = run.state();
  return made;
}

/// A world's samples of each global step, in order; all members of a group must have equal samples.
std::vector<std::vector<int>> steps_of(const std::vector<std::pair<ps::world, consumed>>& processes) {
  const std::uint64_t groups = processes.front().first.size;
  std::vector<std::vector<int>> steps(processes.front().second.batches.size());
  for (std::uint64_t group = 0; group < groups; ++group) {
    const consumed* first = nullptr;
    for (const auto& [part, had] : processes) {
      if (part.rank != group) continue;
      if (first != nullptr) {
        CHECK(had.batches == first->batches);
        CHECK(had.at == first->at);
        continue;
      }
      first = &had;
      CHECK(had.at.world == groups);
      CHECK(had.at.rank == group);
      for (std::size_t s = 0; s < steps.size(); ++s)
        steps[s].insert(steps[s].end(), had.batches[s].begin(), had.batches[s].end());
    }
    REQUIRE(first != nullptr);
  }
  return steps;
}

}  // namespace

TEST_CASE("order/shard: groups get identical batches, and their size may change like the number of ranks") {
  constexpr std::uint64_t global = 12, all = 18;  // 9 steps an epoch, the last one short
  const auto whole = consume({}, global, nullptr, all).batches;
  ps::state at;
  std::uint64_t done = 0;
  // Processes, tensor and pipeline sizes: each run resumes where the previous one stopped.
  for (const auto [size, tensor, pipeline] :
       {std::array<std::uint64_t, 3>{8, 2, 1}, {8, 4, 1}, {5, 1, 1}, {14, 2, 1}, {6, 1, 2}, {3, 3, 1}}) {
    std::vector<std::pair<ps::world, consumed>> processes;
    for (std::uint64_t rank = 0; rank < size; ++rank) {
      ps::world here;
      here.rank = rank;
      here.size = size;
      const auto part = here.model_parallel(tensor, pipeline);
      processes.emplace_back(part, consume(part, global, done == 0 ? nullptr : &at, 3));
    }
    const auto steps = steps_of(processes);
    REQUIRE(steps.size() == 3);
    for (const auto& step : steps) CHECK(step == whole[done++]);
    at = processes[size - 1].second.at;
  }
  CHECK(done == all);
}
