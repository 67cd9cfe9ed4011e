// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Chains of stages with random parameters: stopped anywhere and resumed with any number of ranks and threads,
// they deliver the rest of an uninterrupted run.

#include <penstock/core/random.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace compositions_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

/// Numbers drawn from a seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t n) { return (state_ = ps::mix64(state_ + 1)) % n; }
  std::uint64_t between(std::uint64_t least, std::uint64_t maximum) {
    return least + below(maximum - least + 1);
  }

 private:
  std::uint64_t state_;
};

/// The parameters of a chain.
struct choice {
  std::uint64_t n, seed, window, lanes, skip, take, repeat, buffer, global, steps;
  ps::tail policy;
  std::vector<std::uint64_t> starts;
};
choice draw(dice& d) {
  choice c{};
  c.starts.push_back(0);
  for (std::uint64_t shards = d.between(1, 9); shards != 0; --shards)
    c.starts.push_back(c.starts.back() + d.below(14));
  c.n = c.starts.back();
  c.seed = d.below(1000);
  c.window = d.between(1, 4);
  c.lanes = d.between(1, 6);
  c.skip = d.below(c.n / 2 + 1);
  c.take = d.between(1, 60);
  c.repeat = d.between(1, 3);
  c.buffer = d.between(1, 12);
  c.global = d.between(1, 24);
  c.steps = d.between(1, 12);
  c.policy = std::array{ps::tail::keep, ps::tail::pad, ps::tail::drop}[static_cast<std::size_t>(d.below(3))];
  return c;
}

constexpr auto in_two = [](std::uint64_t x) { return std::array<std::uint64_t, 2>{x, x + 1}; };

auto source(const choice& c) { return ps::generated(c.n, identity, c.starts); }

/// The sorted values of each remaining step, of all ranks together.
template <class Make, class... From>
std::vector<numbers> job(const Make& make, std::uint64_t world, dice& d, std::vector<std::string>* states,
                         const From&... where) {
  std::vector<numbers> all;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto run = (make(rank, world) | ps::workers(static_cast<unsigned>(std::array{0, 1, 2, 7}[d.below(4)])) |
                ps::prefetch(d.between(1, 6)) | ps::allow_empty)
                   .open(where...);
    std::size_t step = 0;
    for (auto epoch : run.epochs(2))
      for (auto&& b : epoch) {
        if (rank == 0) all.emplace_back();
        REQUIRE(step < all.size());
        const numbers mine = values_of(b);
        all[step].insert(all[step].end(), mine.begin(), mine.end());
        if (states != nullptr && rank == world - 1) states->push_back(to_string(run.state()));
        ++step;
      }
    REQUIRE(step == all.size());
  }
  for (numbers& step : all) std::sort(step.begin(), step.end());
  return all;
}

/// Checks any stop, with any ranks before and after, against the global steps of one uninterrupted rank.
template <class Make>
void check_elastic_anywhere(const choice& c, dice& d, const Make& make) {
  const std::vector<numbers> whole = job(make, 1, d, nullptr);
  const std::uint64_t before = d.between(1, std::min<std::uint64_t>(c.global, 6));
  std::vector<std::string> states;
  REQUIRE(job(make, before, d, &states) == whole);
  for (int i = 0; i < 3 && !states.empty(); ++i) {
    const auto stop = static_cast<std::size_t>(d.below(states.size()));
    const std::uint64_t after = d.between(1, std::min<std::uint64_t>(c.global, 6));
    INFO(before << " ranks, stopped after step " << stop << ", then " << after << ": " << states[stop]);
    const auto rest = job(make, after, d, nullptr, ps::state_from_string(states[stop]));
    REQUIRE(rest == std::vector<numbers>(whole.begin() + static_cast<std::ptrdiff_t>(stop) + 1, whole.end()));
  }
}

/// Checks any stop on one rank, for chains in which ranks mix their own samples.
template <class Plan>
void check_rank_anywhere(dice& d, const Plan& plan) {
  const trace whole = follow(plan | ps::workers(2), 2, true);
  for (int i = 0; i < 3 && !whole.states.empty(); ++i) {
    const auto stop = static_cast<std::size_t>(d.below(whole.states.size()));
    INFO("stopped after " << stop << ": " << whole.states[stop]);
    const trace rest = follow(plan | ps::workers(static_cast<unsigned>(d.below(4))), 2, false,
                              ps::state_from_string(whole.states[stop]));
    REQUIRE(rest.elements ==
            std::vector<numbers>(whole.elements.begin() + static_cast<std::ptrdiff_t>(stop) + 1,
                                 whole.elements.end()));
  }
}

template <class Check>
void many_times(const char* name, Check check) {
  const penstock_test::deadline guard(name);
  const std::uint64_t rounds = std::getenv("PENSTOCK_LONG_TESTS") != nullptr ? 2000 : 60;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    dice d(ps::mix64(round));
    const choice c = draw(d);
    INFO(name << ", round " << round << ": " << c.n << " samples, seed " << c.seed << ", window " << c.window
              << ", lanes " << c.lanes << ", skip " << c.skip << ", take " << c.take << ", repeat "
              << c.repeat << ", buffer " << c.buffer << ", global " << c.global << ", steps " << c.steps
              << ", tail " << to_string(c.policy));
    check(c, d);
  }
}

}  // namespace

TEST_CASE("run/compositions: orders in any order") {
  many_times("orders", [](const choice& c, dice& d) {
    check_elastic_anywhere(c, d, [&](std::uint64_t rank, std::uint64_t world) {
      return source(c) | ps::shuffle(ps::seed(c.seed), ps::window(c.window), ps::lanes(c.lanes)) |
             ps::skip(c.skip) | ps::map(noisy) | ps::repeat(c.repeat) | ps::take(c.take) |
             ps::shard(rank, world) | ps::global_batch(c.global, c.policy);
    });
    check_elastic_anywhere(c, d, [&](std::uint64_t rank, std::uint64_t world) {
      return source(c) | ps::take(c.take) | ps::repeat(c.repeat) | ps::shard(rank, world) | ps::map(noisy) |
             ps::shuffle(ps::seed(c.seed)) | ps::global_batch(c.global, c.policy) | ps::skip(1) | ps::take(5);
    });
  });
}

TEST_CASE("run/compositions: a buffer before shard") {
  many_times("buffer", [](const choice& c, dice& d) {
    check_elastic_anywhere(c, d, [&](std::uint64_t rank, std::uint64_t world) {
      return source(c) | ps::skip(c.skip) | ps::shuffle(ps::seed(c.seed), ps::window(c.window)) |
             ps::shuffle_buffer(c.buffer, ps::seed(c.seed)) | ps::map(noisy) | ps::shard(rank, world) |
             ps::global_batch(c.global, c.policy);
    });
  });
}

TEST_CASE("run/compositions: filters and steps") {
  many_times("filters", [](const choice& c, dice& d) {
    if (c.n < 6) return;  // a pass must give every rank a sample
    choice small = c;
    small.global = 1 + c.global % 3;
    check_elastic_anywhere(small, d, [&](std::uint64_t rank, std::uint64_t world) {
      return source(c) | ps::shuffle(ps::seed(c.seed)) | ps::map(noisy) | ps::map(in_two) | ps::unbatch |
             ps::filter([](std::uint64_t x) { return x % 4 != 1; }) | ps::shard(rank, world) |
             ps::global_batch(small.global) | ps::steps(c.steps);
    });
  });
}

TEST_CASE("run/compositions: stages that each rank applies to its own samples") {
  many_times("own", [](const choice& c, dice& d) {
    const std::uint64_t world = d.between(1, 4), rank = d.below(world), each = d.between(1, 6);
    check_rank_anywhere(d, source(c) |
                               ps::shuffle(ps::seed(c.seed), ps::window(c.window), ps::lanes(c.lanes)) |
                               ps::shard(rank, world) | ps::shuffle_buffer(c.buffer, ps::seed(c.seed)) |
                               ps::map(noisy) | ps::batch(each, c.policy));
    check_rank_anywhere(d, source(c) | ps::shuffle(ps::seed(c.seed)) | ps::repeat(c.repeat) | ps::map(noisy) |
                               ps::filter(odd_thirds) | ps::skip(c.skip) | ps::take(c.take) |
                               ps::batch(each, c.policy));
    check_rank_anywhere(d, source(c) | ps::shuffle(ps::seed(c.seed)) |
                               ps::shuffle_buffer(c.buffer, ps::seed(1)) | ps::map(noisy) | ps::map(in_two) |
                               ps::unbatch);
  });
}

}  // namespace compositions_test
