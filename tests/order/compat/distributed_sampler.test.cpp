// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/compat/distributed_sampler.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/external_program.hpp"
#include "support/temp_dir.hpp"

namespace ps = penstock;

static_assert(ps::order<ps::distributed_sampler_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::distributed_sampler_stage>, "distributed_sampler is an order stage");

namespace {

using numbers = std::vector<std::uint64_t>;
using sampler_options = ps::distributed_sampler_options;

/// torch.randperm(n), with the standard library's engine and the documented loop.
numbers reference_randperm(std::uint64_t n, std::uint64_t seed) {
  numbers order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::mt19937 draw(static_cast<std::uint32_t>(seed & 0xffffffffu));
  for (std::uint64_t i = 0; i + 1 < n; ++i) {
    const std::uint64_t other = i + draw() % (n - i);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(other)]);
  }
  return order;
}

/// The samples that iterating DistributedSampler gives rank r, transcribed from its source.
numbers reference_rank(std::uint64_t n, const sampler_options& o, std::uint64_t rank, std::uint64_t epoch) {
  numbers all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  if (o.shuffle) all = reference_randperm(n, o.seed + o.epoch + epoch);
  const std::uint64_t w = o.num_replicas, each = o.drop_last ? n / w : (n + w - 1) / w;
  for (std::size_t i = 0; all.size() < each * w; ++i) all.push_back(all[i]);
  numbers mine;
  for (std::uint64_t i = 0; i < each; ++i) mine.push_back(all[static_cast<std::size_t>(rank + i * w)]);
  return mine;
}

template <class Order>
numbers sampled_epoch(const Order& made, std::uint64_t epoch) {
  const auto bound = made.bind(epoch);
  numbers all;
  for (std::uint64_t p = 0; p < made.size(); ++p) all.push_back(bound(p).index);
  return all;
}

numbers rank_of(const numbers& all, std::uint64_t rank, std::uint64_t replicas) {
  numbers mine;
  for (std::uint64_t p = rank; p < all.size(); p += replicas)
    mine.push_back(all[static_cast<std::size_t>(p)]);
  return mine;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t n) {
  numbers all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  return all;
}

using index_batches = std::vector<numbers>;

/// Cuts a list into batches of b; the last one may be short.
index_batches in_batches(const numbers& all, std::size_t b, bool drop_last = false) {
  index_batches made;
  for (std::size_t i = 0; i < all.size(); i += b) {
    if (drop_last && i + b > all.size()) break;
    made.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                      all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), i + b)));
  }
  return made;
}

template <class Epoch>
index_batches batches_of_epoch(Epoch&& epoch) {
  index_batches all;
  for (auto&& b : epoch) {
    const auto values = b.values();
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("order/distributed_sampler: randperm gives PyTorch's permutations") {
  const auto of = [](std::uint64_t seed) { return ps::detail::torch_randperm<std::uint32_t>(10, seed); };
  using list = std::vector<std::uint32_t>;
  CHECK(of(0) == list{4, 1, 7, 5, 3, 9, 0, 8, 6, 2});
  CHECK(of(1) == list{5, 6, 1, 2, 0, 8, 9, 3, 7, 4});
  CHECK(of(42) == list{2, 6, 1, 8, 4, 5, 0, 9, 3, 7});
  CHECK(of((std::uint64_t{1} << 32) + 42) == of(42));
  CHECK(ps::detail::torch_randperm<std::uint32_t>(0, 3).empty());
  CHECK(ps::detail::torch_randperm<std::uint32_t>(1, 3) == list{0});
}

TEST_CASE("order/distributed_sampler: the generator is the standard's MT19937") {
  for (const std::uint32_t seed : {0u, 1u, 5489u, 0xffffffffu}) {
    ps::detail::mersenne_twister ours(seed);
    std::mt19937 standard(seed);
    bool same = true;
    for (int i = 0; i < 3000; ++i) same = same && ours.next() == standard();
    CHECK(same);
  }
  ps::detail::mersenne_twister zero(0);
  CHECK(zero.next() == 2357136044u);
  CHECK(zero.next() == 2546248239u);
  CHECK(zero.next() == 3071714933u);
}

TEST_CASE("order/distributed_sampler: large permutations draw 64 bits, high half first, inside out") {
  const std::uint64_t n = 1000, seed = 9;
  std::mt19937 draw(9);
  numbers expected(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t high = draw(), low = draw();
    const auto other = static_cast<std::size_t>(((high << 32) + low) % (i + 1));
    expected[static_cast<std::size_t>(i)] = i;
    std::swap(expected[static_cast<std::size_t>(i)], expected[other]);
  }
  CHECK(ps::detail::torch_randperm<std::uint64_t>(n, seed, n) == expected);
  CHECK(ps::detail::torch_randperm<std::uint64_t>(n, seed, n + 1) == reference_randperm(n, seed));
  CHECK(ps::detail::torch_wide_draws == 214'748'364);
}

TEST_CASE("order/distributed_sampler: every rank has the samples of DistributedSampler, in its order") {
  ps::rng random(3, 0, 0);
  for (int round = 0; round < 400; ++round) {
    const std::uint64_t n = random.below(random.chance(0.2) ? 2000 : 40);
    const sampler_options o{.num_replicas = 1 + random.below(random.chance(0.2) ? 100 : 9),
                            .shuffle = random.chance(0.8),
                            .seed = random.below(1000),
                            .drop_last = random.chance(0.5),
                            .epoch = random.below(3)};
    const auto made = ps::distributed_sampler(o).make({n, nullptr});
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      const numbers all = sampled_epoch(made, epoch);
      bool same = all.size() % o.num_replicas == 0;
      for (std::uint64_t r = 0; r < o.num_replicas && n != 0; ++r)
        same = same && rank_of(all, r, o.num_replicas) == reference_rank(n, o, r, epoch);
      INFO("n " << n << ", " << ps::distributed_sampler(o).describe() << ", epoch " << epoch);
      CHECK(same);
    }
  }
}

TEST_CASE("order/distributed_sampler: the order has an inverse; a repeated sample maps to its first place") {
  for (const bool shuffled : {true, false}) {
    for (const bool drop : {true, false}) {
      for (const std::uint64_t n : {0u, 1u, 3u, 8u, 61u}) {
        const auto made =
            ps::distributed_sampler({.num_replicas = 4, .shuffle = shuffled, .seed = 5, .drop_last = drop})
                .make({n, nullptr});
        const numbers all = sampled_epoch(made, 2);
        for (std::uint64_t i = 0; i < n; ++i) {
          const auto place = std::find(all.begin(), all.end(), i);
          const auto found = made.position_of({2, i});
          REQUIRE(found.has_value() == (place != all.end()));
          if (found) CHECK(*found == ps::position{2, static_cast<std::uint64_t>(place - all.begin())});
        }
        CHECK_FALSE(made.position_of({2, n}).has_value());
      }
    }
  }
}

TEST_CASE("order/distributed_sampler: a table of 64-bit entries holds an equal order") {
  const sampler_options o{.num_replicas = 3, .seed = 11};
  const ps::distributed_sampler_order narrow({100, nullptr}, o), wide({100, nullptr}, o, 99);
  CHECK(sampled_epoch(narrow, 4) == sampled_epoch(wide, 4));
  CHECK(wide.position_of({4, 50}) == narrow.position_of({4, 50}));
}

TEST_CASE(
    "order/distributed_sampler: batches of a rank are those of its DataLoader, with any number of workers") {
  const std::uint64_t n = 103, replicas = 4;
  const numbers data = first_numbers(n);
  for (const bool drop : {false, true}) {
    const sampler_options o{.num_replicas = replicas, .seed = 3, .drop_last = drop};
    for (std::uint64_t rank = 0; rank < replicas; ++rank) {
      const auto mine = reference_rank(n, o, rank, 0);
      const auto plan = ps::from(data) | ps::distributed_sampler(o) | ps::shard(rank, replicas);
      for (const unsigned workers : {0u, 2u}) {
        CHECK(penstock_test::batches_of(plan | ps::batch(8), workers) == in_batches(mine, 8));
        CHECK(penstock_test::batches_of(plan | ps::batch(8, ps::tail::drop), workers) ==
              in_batches(mine, 8, true));
        CHECK(penstock_test::values_of(plan, workers) == mine);
      }
    }
  }
}

TEST_CASE("order/distributed_sampler: after filter a rank keeps its samples") {
  const numbers data = first_numbers(50);
  const sampler_options o{.num_replicas = 3, .seed = 8};
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    numbers even;
    for (const std::uint64_t i : reference_rank(50, o, rank, 0))
      if (i % 2 == 0) even.push_back(i);
    const auto plan = ps::from(data) | ps::distributed_sampler(o) | ps::shard(rank, 3) |
                      ps::filter([](std::uint64_t i) { return i % 2 == 0; });
    CHECK(penstock_test::values_of(plan) == even);
  }
}

TEST_CASE("order/distributed_sampler: a run started in PyTorch resumes at its next batch") {
  const std::uint64_t n = 64, replicas = 2, rank = 1;
  const numbers data = first_numbers(n);
  const sampler_options o{.num_replicas = replicas, .seed = 40};
  const auto plan = ps::from(data) | ps::distributed_sampler(o) | ps::shard(rank, replicas) | ps::batch(5);
  auto at = plan.open().state();
  at.epoch = 3;
  at.step = 2;
  auto run = plan.open(at);
  std::vector<index_batches> rest;
  for (auto epoch : run.epochs(5)) rest.push_back(batches_of_epoch(epoch));
  REQUIRE(rest.size() == 2);
  auto third = in_batches(reference_rank(n, o, rank, 3), 5);
  third.erase(third.begin(), third.begin() + 2);
  CHECK(rest[0] == third);
  CHECK(rest[1] == in_batches(reference_rank(n, o, rank, 4), 5));

  const auto later = sampler_options{.num_replicas = replicas, .seed = 40, .epoch = 3};
  const auto moved =
      ps::from(data) | ps::distributed_sampler(later) | ps::shard(rank, replicas) | ps::batch(5);
  CHECK(penstock_test::batches_of(moved) == in_batches(reference_rank(n, o, rank, 3), 5));
}

TEST_CASE("order/distributed_sampler: keeps every guarantee; a global step does not depend on the ranks") {
  const numbers data = first_numbers(83);
  const auto sampled = ps::from(data) | ps::distributed_sampler({.num_replicas = 4, .seed = 1});
  using plan = decltype(sampled | ps::shard(0, 4) | ps::batch(6));
  static_assert(ps::indexed<plan> && ps::deterministic<plan> && ps::resumable<plan> && ps::elastic<plan> &&
                    ps::lockstep<plan>,
                "distributed_sampler keeps every guarantee");
  const auto steps = [&](std::uint64_t ranks) {
    index_batches all;
    for (std::uint64_t r = 0; r < ranks; ++r) {
      const auto part = penstock_test::batches_of(sampled | ps::shard(r, ranks) |
                                                  ps::batch(static_cast<std::size_t>(24 / ranks)));
      all.resize(std::max(all.size(), part.size()));
      for (std::size_t s = 0; s < part.size(); ++s)
        all[s].insert(all[s].end(), part[s].begin(), part[s].end());
    }
    return all;
  };
  const index_batches four = steps(4);
  CHECK(four.size() == 4);
  CHECK(steps(1) == four);
  CHECK(steps(2) == four);
  CHECK(steps(8) == four);
}

TEST_CASE("order/distributed_sampler: a state of another order is refused") {
  const numbers data = first_numbers(20);
  const auto plan_of = [&](sampler_options o) {
    return ps::from(data) | ps::distributed_sampler(o) | ps::batch(4);
  };
  const auto state = plan_of({.num_replicas = 2, .seed = 1}).open().state();
  CHECK_NOTHROW(plan_of({.num_replicas = 2, .seed = 1}).open(state));
  CHECK_NOTHROW(plan_of({.num_replicas = 2, .seed = 0, .epoch = 1}).open(state));
  CHECK_THROWS_AS(plan_of({.num_replicas = 2, .seed = 2}).open(state), ps::error);
  CHECK_THROWS_AS(plan_of({.num_replicas = 1, .seed = 1}).open(state), ps::error);
  CHECK_THROWS_AS(plan_of({.num_replicas = 2, .shuffle = false, .seed = 1}).open(state), ps::error);
  CHECK_THROWS_AS(plan_of({.num_replicas = 2, .seed = 1, .drop_last = true}).open(state), ps::error);
}

TEST_CASE("order/distributed_sampler: many threads may bind and read one order") {
  const auto made = ps::distributed_sampler({.num_replicas = 2, .seed = 7}).make({500, nullptr});
  std::vector<numbers> expected;
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) expected.push_back(reference_randperm(500, 7 + epoch));
  std::vector<std::thread> threads;
  std::vector<char> right(4, 0);
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      bool same = true;
      for (std::size_t i = 0; i < 30; ++i)
        same = same && sampled_epoch(made, (i + t) % 6) == expected[(i + t) % 6];
      right[t] = same ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == std::vector<char>(4, 1));
}

TEST_CASE("order/distributed_sampler: impossible arguments are errors that say what to write") {
  const ps::order_input in{10, nullptr};
  CHECK_THROWS_WITH(ps::distributed_sampler({}).make(in),
                    penstock_test::contains("write distributed_sampler({.num_replicas = n})"));
  CHECK_THROWS_WITH(ps::distributed_sampler({.num_replicas = (1u << 24) + 1}).make(in),
                    penstock_test::contains("16777217 is not in [1, 2^24]"));
  CHECK_THROWS_WITH(ps::distributed_sampler({.num_replicas = 2}).make({std::uint64_t{1} << 63, nullptr}),
                    penstock_test::contains("before repeat()"));
}

TEST_CASE("order/distributed_sampler: describes itself") {
  CHECK(ps::distributed_sampler({.num_replicas = 8, .seed = 7}).describe() ==
        "distributed_sampler(8 replicas, seed 7)");
  CHECK(ps::distributed_sampler({.num_replicas = 2, .shuffle = false, .drop_last = true, .epoch = 4})
            .describe() == "distributed_sampler(2 replicas, in order, drop_last, epochs from 4)");
}

TEST_CASE("order/distributed_sampler: batches are those that PyTorch's sampler gives") {
  const std::string probe = "-c 'import torch.utils.data.distributed'";
  const std::string python = penstock_test::python_for(probe);
  if (!penstock_test::have_program("PyTorch", python + " " + probe)) return;
  // A line per case in; the samples of every rank out, batches apart by -1.
  constexpr const char* sampler_in_python = R"py(import sys
from torch.utils.data import BatchSampler
from torch.utils.data.distributed import DistributedSampler
out = open(sys.argv[2], "w")
for line in open(sys.argv[1]):
    n, replicas, shuffle, seed, drop, epoch, batch, drop_batch = map(int, line.split())
    for rank in range(replicas):
        sampler = DistributedSampler(range(n), replicas, rank, bool(shuffle), seed, bool(drop))
        sampler.set_epoch(epoch)
        for indices in BatchSampler(sampler, batch, bool(drop_batch)):
            print(*indices, -1, file=out)
    print(-2, file=out)
)py";
  struct sampled {
    std::uint64_t n;
    sampler_options sampler;
    std::uint64_t epoch, batch;
    bool drop_batch;
  };
  ps::rng random(8, 0, 0);
  std::vector<sampled> cases;
  const penstock_test::temp_dir dir;
  std::ofstream(dir / "sample.py") << sampler_in_python;
  std::ofstream list(dir / "list");
  for (int i = 0; i < 300; ++i) {
    const sampled one{.n = random.below(i % 30 == 0 ? 70'000 : 300),
                      .sampler = {.num_replicas = 1 + random.below(i % 7 == 0 ? 60 : 8),
                                  .shuffle = random.chance(0.8),
                                  .seed = random.chance(0.5) ? random.below(100) : random() >> 24,
                                  .drop_last = random.chance(0.5)},
                      .epoch = random.below(50),
                      .batch = 1 + random.below(40),
                      .drop_batch = random.chance(0.3)};
    cases.push_back(one);
    list << one.n << " " << one.sampler.num_replicas << " " << one.sampler.shuffle << " " << one.sampler.seed
         << " " << one.sampler.drop_last << " " << one.epoch << " " << one.batch << " " << one.drop_batch
         << "\n";
  }
  list.close();
  const auto ran = penstock_test::run_program(python + " " + (dir / "sample.py").string() + " " +
                                              (dir / "list").string() + " " + (dir / "out").string());
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  std::ifstream out(dir / "out");
  for (const sampled& one : cases) {
    index_batches theirs;
    bool begun = false;
    for (std::int64_t number = 0; out >> number && number != -2;) {
      if (!std::exchange(begun, number != -1)) theirs.emplace_back();
      if (number != -1) theirs.back().push_back(static_cast<std::uint64_t>(number));
    }
    const numbers data = first_numbers(one.n);
    index_batches ours;
    for (std::uint64_t rank = 0; rank < one.sampler.num_replicas; ++rank) {
      const auto plan =
          ps::from(data) | ps::distributed_sampler(one.sampler) | ps::shard(rank, one.sampler.num_replicas) |
          ps::batch(static_cast<std::size_t>(one.batch), one.drop_batch ? ps::tail::drop : ps::tail::keep) |
          ps::allow_empty;
      auto run = (plan | ps::workers(0)).open();
      for (auto& b : batches_of_epoch(run.epoch(one.epoch))) ours.push_back(std::move(b));
    }
    INFO("n " << one.n << ", " << ps::distributed_sampler(one.sampler).describe() << ", epoch " << one.epoch
              << ", batch " << one.batch);
    CHECK(ours == theirs);
  }
}
