// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

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
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"
#include "support/resume_test.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace global_batch_test {

namespace ps = penstock;
using namespace engine_test;

namespace {

/// All ranks of a job, step by step: the samples of each, and the job's state (any rank's).
struct job_steps {
  std::vector<numbers> global;  // the ranks' batches in the order of ranks
  std::vector<std::vector<std::size_t>> sizes;
  std::vector<std::string> states;
};

/// Runs `world` ranks to the end of epoch `epochs - 1`, or for `maximum` steps.
template <class Make, class... From>
job_steps run_job(const Make& make, std::uint64_t world, std::uint64_t epochs, std::size_t maximum,
                  const From&... where) {
  job_steps all;
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    auto run =
        (make(rank, world) | ps::workers(static_cast<unsigned>(rank % 3)) | ps::allow_empty).open(where...);
    std::size_t step = 0;
    for (auto epoch : run.epochs(epochs)) {
      if (step == maximum) break;
      for (auto&& b : epoch) {
        if (rank == 0) {
          all.global.emplace_back();
          all.sizes.emplace_back();
          all.states.emplace_back();
        }
        REQUIRE(step < all.global.size());  // equal steps on every rank
        const numbers mine = values_of(b);
        all.global[step].insert(all.global[step].end(), mine.begin(), mine.end());
        all.sizes[step].push_back(mine.size());
        if (rank == step % world) all.states[step] = to_string(run.state());
        if (++step == maximum) break;
      }
    }
    REQUIRE(step == all.global.size());
  }
  return all;
}

numbers sorted(numbers all) {
  std::sort(all.begin(), all.end());
  return all;
}
void same_steps(const job_steps& job, const job_steps& alone, std::size_t first, bool in_order) {
  for (std::size_t i = 0; i < job.global.size(); ++i) {
    INFO("step " << first + i);
    REQUIRE(first + i < alone.global.size());
    if (in_order)
      REQUIRE(job.global[i] == alone.global[first + i]);
    else
      REQUIRE(sorted(job.global[i]) == sorted(alone.global[first + i]));
  }
}

/// The global batch of 12 in different chains; each gets (rank, world).
template <class Check>
void on_each_chain(Check check) {
  const auto source = ps::generated(100, identity) | ps::map(noisy);
  check("shuffled", true, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, world) | ps::global_batch(12);
  });
  check("in lanes", false, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle(ps::seed(3), ps::window(1), ps::lanes(5)) | ps::shard(rank, world) |
           ps::global_batch(12, ps::tail::drop);
  });
  check("padded", true, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::skip(5) | ps::shuffle(ps::seed(3)) | ps::take(70) | ps::repeat(2) |
           ps::shard(rank, world) | ps::global_batch(12, ps::tail::pad);
  });
  check("buffered", true, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle_buffer(10) | ps::shard(rank, world) | ps::global_batch(12);
  });
  check("filtered", false, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::filter(odd_thirds) | ps::shard(rank, world) | ps::global_batch(12) | ps::steps(7);
  });
  check("steps", true, [source](std::uint64_t rank, std::uint64_t world) {
    return source | ps::shuffle(ps::seed(3)) | ps::shard(rank, world) | ps::global_batch(12) | ps::steps(13);
  });
}

}  // namespace

TEST_CASE("run/global_batch: global steps do not depend on the ranks, whose parts differ by at most one") {
  const penstock_test::deadline guard("worlds");
  on_each_chain([](const char* name, bool in_order, auto make) {
    const job_steps alone = run_job(make, 1, 2, ~std::size_t{0});
    for (std::uint64_t world = 2; world <= 12; ++world) {
      INFO(name << " on " << world << " ranks");
      const job_steps job = run_job(make, world, 2, ~std::size_t{0});
      CHECK(job.global.size() == alone.global.size());
      same_steps(job, alone, 0, in_order);
      for (const auto& sizes : job.sizes) {
        const auto [least, maximum] = std::minmax_element(sizes.begin(), sizes.end());
        if (std::string(name) != "padded") CHECK(*maximum - *least <= 1);
      }
    }
  });
}

TEST_CASE("run/global_batch: stopped on any number of ranks, it resumes with any other") {
  const penstock_test::deadline guard("elastic");
  on_each_chain([](const char* name, bool in_order, auto make) {
    const job_steps alone = run_job(make, 1, 2, ~std::size_t{0});
    for (const std::uint64_t before : {1u, 2u, 3u, 5u, 7u, 12u}) {
      const job_steps job = run_job(make, before, 2, ~std::size_t{0});
      for (const std::uint64_t after : {1u, 4u, 5u, 11u}) {
        for (std::size_t stop = 0; stop < job.states.size(); stop += 4) {
          INFO(name << ": " << before << " ranks to " << after << " after step " << stop);
          const job_steps rest =
              run_job(make, after, 2, ~std::size_t{0}, ps::state_from_string(job.states[stop]));
          REQUIRE(rest.global.size() + stop + 1 == alone.global.size());
          same_steps(rest, alone, stop + 1, in_order);
        }
      }
    }
  });
}

TEST_CASE("run/global_batch: many restarts in a row, each with other ranks and other threads") {
  const penstock_test::deadline guard("restarts");
  on_each_chain([](const char* name, bool in_order, auto make) {
    const job_steps alone = run_job(make, 1, 4, ~std::size_t{0});
    std::uint64_t drawn = 20;
    const auto draw = [&drawn] { return drawn = ps::mix64(drawn + 1); };
    job_steps job = run_job(make, 5, 4, 2);
    same_steps(job, alone, 0, in_order);
    std::size_t done = job.global.size();
    while (done != alone.global.size()) {
      const std::uint64_t world = 1 + draw() % 12, steps = 1 + draw() % 4;
      INFO(name << ": " << steps << " steps on " << world << " ranks after step " << done);
      job =
          run_job(make, world, 4, static_cast<std::size_t>(steps), ps::state_from_string(job.states.back()));
      same_steps(job, alone, done, in_order);
      done += job.global.size();
    }
  });
}

TEST_CASE("run/global_batch: a state saved again before the first step is unchanged") {
  const penstock_test::deadline guard("saved anew");
  on_each_chain([](const char* name, bool in_order, auto make) {
    const job_steps alone = run_job(make, 1, 2, ~std::size_t{0});
    for (std::uint64_t trial = 0; trial < 30; ++trial) {
      auto draw = [&trial, count = std::uint64_t{0}](std::uint64_t below) mutable {
        return ps::mix64(trial << 8 | count++) % below;
      };
      const job_steps job = run_job(make, 1 + draw(12), 2, 1 + draw(alone.states.size()));
      std::string where = job.states.back();
      for (int again = 0; again < 3; ++again) {
        const std::uint64_t world = 1 + draw(12);
        auto run = make(draw(world), world).open(ps::state_from_string(where));
        where = to_string(run.state());
      }
      INFO(name << ": trial " << trial << ", " << where);
      const std::uint64_t world = 1 + draw(12);
      const job_steps rest = run_job(make, world, 2, ~std::size_t{0}, ps::state_from_string(where));
      REQUIRE(rest.global.size() + job.global.size() == alone.global.size());
      same_steps(rest, alone, job.global.size(), in_order);
    }
  });
}

TEST_CASE("run/global_batch: batch(b) resumes as global_batch(b * world), and vice versa") {
  const auto source = ps::generated(100, identity) | ps::shuffle(ps::seed(3));
  auto two = (source | ps::shard(1, 2) | ps::batch(6)).open();
  auto first = two.next();
  REQUIRE(first);
  auto three = (source | ps::shard(0, 5) | ps::global_batch(12)).open(two.state());
  auto second = three.next();
  REQUIRE(second);
  CHECK(second->step() == 1);
  auto again = (source | ps::shard(0, 2) | ps::batch(6)).open(two.state());
  CHECK(values_of(*again.next())[0] == values_of(*second)[0]);
  CHECK_THROWS_WITH((source | ps::shard(0, 5) | ps::global_batch(13)).open(two.state()),
                    penstock_test::contains("another sequence"));
}

TEST_CASE("run/global_batch: more ranks than samples, and than samples in a step") {
  for (const std::uint64_t n : {0u, 1u, 3u, 13u})
    for (const auto policy : {ps::tail::keep, ps::tail::pad, ps::tail::drop}) {
      const auto make = [n, policy](std::uint64_t rank, std::uint64_t world) {
        return ps::generated(n, identity) | ps::shuffle(ps::seed(1)) | ps::shard(rank, world) |
               ps::global_batch(12, policy);
      };
      const job_steps alone = run_job(make, 1, 2, ~std::size_t{0});
      for (std::uint64_t world = 2; world <= 12; ++world)
        same_steps(run_job(make, world, 2, ~std::size_t{0}), alone, 0, true);
    }
}

TEST_CASE("run/global_batch: impossible cuts are one sentence") {
  const auto source = ps::generated(100, identity);
  CHECK_THROWS_WITH((source | ps::shard(0, 9) | ps::global_batch(8)).open(),
                    penstock_test::contains("samples for at most 8 ranks, not 9"));
  CHECK_THROWS_WITH(ps::global_batch(0), penstock_test::contains("holds no sample"));
  CHECK_THROWS_WITH(
      (ps::plan(counting_source(9)) | ps::shard(0, 3) | ps::global_batch(8) | ps::steps(1)).open(),
      penstock_test::contains("3 does not"));
  CHECK((source | ps::global_batch(8)).open().steps_per_epoch() == 13);
  ps::state s = (source | ps::global_batch(8)).open().state();
  s.world = 9;
  CHECK_THROWS_WITH((source | ps::global_batch(8)).open(s), penstock_test::contains("more ranks than"));
}

TEST_CASE("run/global_batch: a buffer of a rank's own samples, if its last part is larger than the others") {
  for (std::uint64_t samples = 1; samples <= 48; ++samples) {
    const auto source =
        ps::generated(samples, identity) | ps::shuffle(ps::seed(3), ps::window(1), ps::lanes(2));
    numbers expected;
    for (std::uint64_t i = 0; i < samples; ++i) expected.push_back(i);
    for (std::uint64_t world = 1; world <= 8; ++world) {
      INFO(samples << " samples on " << world << " ranks");
      const auto make = [&](std::uint64_t rank, std::uint64_t ranks) {
        return source | ps::shard(rank, ranks) | ps::shuffle_buffer(4, ps::seed(1)) | ps::global_batch(8);
      };
      numbers all;
      for (const numbers& step : run_job(make, world, 1, ~std::size_t{0}).global)
        all.insert(all.end(), step.begin(), step.end());
      REQUIRE(sorted(all) == expected);
    }
  }
}

}  // namespace global_batch_test
