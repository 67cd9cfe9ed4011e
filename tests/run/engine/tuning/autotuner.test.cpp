// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/tuning/autotuner.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace autotuner_test {

namespace ps = penstock;

namespace {

/// A made-up load, in milliseconds of simulated time.
struct load {
  double cost = 1;           ///< of a block, for one worker
  double tail = 0;           ///< share of blocks that take twenty times as long
  double spread = 0;         ///< of the cost, as a share of it
  double step = 1;           ///< of the loop
  double noise = 0;          ///< of the step, as a share of it
  double processors = 1000;  ///< that workers and the step share if they compute; many: they wait
  double latency = 0;        ///< of a request; a block is one
};

/// Blocks through a ring: workers take them in order, each as soon as it is free and the block that had its
/// place was given back; the loop takes them in order.
class simulated_run {
 public:
  explicit simulated_run(load what, std::uint64_t seed = 1) : load_(what), random_(seed, 0, 0) {}

  load& what() { return load_; }
  [[nodiscard]] double now() const { return loop_; }
  [[nodiscard]] std::uint64_t blocks() const { return next_; }

  void block(const ps::tuned_limits& limits) {
    const auto workers = static_cast<std::size_t>(limits.workers);
    free_.resize(std::max(free_.size(), workers), loop_);
    const std::size_t worker = static_cast<std::size_t>(
        std::min_element(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(workers)) -
        free_.begin());
    // The loop's step computes too while it lasts.
    const double demand = load_.cost * static_cast<double>(limits.workers) / (load_.cost + 0.01);
    const double share = std::max(1.0, (demand + load_.step / (load_.step + stall_each_)) / load_.processors);
    double cost = load_.cost * share * (1 + load_.spread * (2 * uniform() - 1));
    if (uniform() < load_.tail) cost *= 20;
    const double place =
        given_back_.size() < limits.depth ? 0 : given_back_[given_back_.size() - limits.depth];
    double begin = std::max(free_[worker], place);
    if (load_.latency > 0) {  // requested when the block so many before it was begun
      const double asked = begun_.size() < limits.ahead ? 0 : begun_[begun_.size() - limits.ahead];
      const double there = std::max(asked, asks_) + load_.latency;
      asks_ = std::max(asked, asks_) +
              load_.latency / static_cast<double>(std::max<std::uint64_t>(1, limits.requests));
      cost += std::max(0.0, there - begin);
    }
    const double ready = begin + cost;
    const double stall = std::max(0.0, ready - loop_);
    // Workers without room while the loop waits.
    for (std::size_t i = 0; i < workers; ++i)
      if (i != worker) totals_.room_in_stall_ns += ns(std::max(0.0, ready - std::max(loop_, free_[i])));
    free_[worker] = ready;
    begun_.push_back(begin);
    totals_.busy_ns += ns(cost);
    totals_.stall_ns += ns(stall);
    stall_each_ += (stall - stall_each_) / 16;
    loop_ =
        std::max(loop_, ready) + load_.step * std::max(1.0, share) * (1 + load_.noise * (2 * uniform() - 1));
    given_back_.push_back(loop_);
    ++next_;
    totals_.ns = ns(loop_);
    totals_.samples += 32;
    ++totals_.blocks;
    totals_.reading = load_.latency > 0 ? 0.9 : 0.1;
  }
  [[nodiscard]] const ps::tuner_totals& totals() const { return totals_; }

 private:
  static std::uint64_t ns(double ms) { return static_cast<std::uint64_t>(ms * 1e6); }
  double uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

  load load_;
  ps::rng random_;
  std::vector<double> free_, given_back_, begun_;
  double loop_ = 0, asks_ = 0, stall_each_ = 0;
  std::uint64_t next_ = 0;
  ps::tuner_totals totals_;
};

/// Blocks a second of simulated time with fixed limits.
double rate_with(const load& what, const ps::tuned_limits& limits) {
  simulated_run run(what, 7);
  while (run.now() < 1500 || run.blocks() < 500) run.block(limits);
  return static_cast<double>(run.blocks()) / run.now();
}

ps::tuner_setup setup_for(const load& what) {
  ps::tuner_setup setup;
  setup.start = {2, 5, 0, 0};
  setup.least = {1, 5, 0, 0};
  setup.most = {8, 40, 0, 0};
  if (what.latency > 0) {
    setup.start.ahead = setup.least.ahead = 8;
    setup.most.ahead = 32;
    setup.start.requests = setup.least.requests = 64;
    setup.most.requests = 256;
  }
  setup.crowded = what.processors < 100;
  return setup;
}

/// The best rate of a grid, within the bounds of the setup.
double best_of_grid(const load& what, const ps::tuner_setup& setup) {
  double best = 0;
  for (const std::uint64_t workers : {1u, 2u, 4u, 6u, 8u})
    for (const std::uint64_t depth : {5u, 10u, 40u})
      for (const std::uint64_t ahead : {1u, 2u, 4u})
        if (ahead == 1 || what.latency > 0)
          best = std::max(best,
                          rate_with(what, {workers, depth, setup.start.ahead * ahead, setup.start.requests}));
  return best;
}

/// Lets a run be tuned for so long; `see` is called after each look.
void tune(simulated_run& run, ps::autotuner& tuner, double until_ms,
          const std::function<void(const ps::tuned_limits&)>& see = {}) {
  std::uint64_t look_at = run.blocks();
  ps::tuned_limits now = tuner.limits();
  while (run.now() < until_ms) {
    if (run.blocks() >= look_at) {
      now = tuner.look(run.totals());
      look_at = run.blocks() + tuner.stride();
      if (see) see(now);
    }
    run.block(now);
  }
}

const std::vector<load>& loads() {
  static const std::vector<load> all = {
      {.cost = 6, .step = 1},                                  // waits: more workers
      {.cost = 6, .step = 1, .processors = 2},                 // computes, on two processors
      {.cost = 2, .tail = 0.02, .step = 2.2},                  // uneven samples: more depth
      {.cost = 1, .step = 8, .noise = 0.2},                    // a slow step
      {.cost = 1.5, .step = 2, .processors = 2},               // workers beside the step
      {.cost = 0.2, .spread = 0.5, .step = 0.02},              // tiny samples
      {.cost = 2, .spread = 0.5, .step = 1.2, .latency = 40},  // a store far away
      {.cost = 40, .step = 300, .noise = 0.05},                // few blocks in ten seconds
  };
  return all;
}

}  // namespace

TEST_CASE("run/engine/tuning/autotuner: made-up loads come near the best of a grid, and then it is quiet") {
  for (const load& what : loads()) {
    const ps::tuner_setup setup = setup_for(what);
    const double best = best_of_grid(what, setup), usual = rate_with(what, setup.start);
    for (const std::uint64_t seed : {1u, 2u}) {
      simulated_run run(what, seed);
      ps::autotuner tuner(setup);
      bool within_caps = true;
      tune(run, tuner, 10'500, [&](const ps::tuned_limits& now) {
        for (const auto one : ps::tuned_limits::all)
          within_caps = within_caps && now.*one >= setup.least.*one && now.*one <= setup.most.*one;
      });
      INFO("cost " << what.cost << ", step " << what.step << ", seed " << seed << ": "
                   << ps::as_stages(tuner.best(), setup.start, true) << ", trials " << tuner.trials());
      CHECK(within_caps);
      CHECK(tuner.quiet());
      CHECK(tuner.limits() == tuner.best());
      CHECK(tuner.trials() <= 16);
      const double found = rate_with(what, tuner.best());
      CHECK(found >= 0.95 * best);
      CHECK(found >= 0.98 * usual);
      const std::uint64_t trials = tuner.trials();
      tune(run, tuner, 40'000);
      CHECK(tuner.trials() == trials);
      CHECK(static_cast<double>(run.blocks()) / run.now() >= 0.98 * usual);
    }
  }
}

TEST_CASE("run/engine/tuning/autotuner: a step that takes another time begins it again, a pause does not") {
  const load what{.cost = 6, .step = 6};
  simulated_run run(what);
  ps::autotuner tuner(setup_for(what));
  tune(run, tuner, 12'000);
  CHECK(tuner.best() == tuner.start());  // two workers are enough
  CHECK(tuner.searches() == 1);
  // Checkpoints, of two seconds each, every 40 steps.
  for (int i = 0; i < 40; ++i) {
    tune(run, tuner, run.now() + 240);
    run.what().step = 2000;
    run.block(tuner.limits());
    run.what().step = 6;
  }
  CHECK(tuner.searches() == 1);
  CHECK(tuner.quiet());
  run.what().step = 1;
  tune(run, tuner, run.now() + 20'000);
  CHECK(tuner.quiet());
  CHECK(tuner.searches() == 2);
  CHECK(tuner.best().workers >= 6);
  run.what().cost = 0.1;  // one would do
  tune(run, tuner, run.now() + 30'000);
  CHECK(tuner.quiet());
  CHECK(rate_with(run.what(), tuner.best()) >= 0.98 * rate_with(run.what(), tuner.start()));
}

TEST_CASE("run/engine/tuning/autotuner: what is slower is given back at once, what is fixed stays") {
  // Four workers are half as fast as two.
  load what{.cost = 6, .step = 0.5};
  const ps::tuner_setup setup = setup_for(what);
  simulated_run run(what);
  ps::autotuner tuner(setup);
  std::uint64_t looks_with_more = 0;
  tune(run, tuner, 12'000, [&](const ps::tuned_limits& now) {
    run.what().cost = now.workers > 2 ? 40 : 6;
    looks_with_more += now.workers > 2 ? 1 : 0;
  });
  CHECK(tuner.quiet());
  CHECK(tuner.best().workers <= 2);
  CHECK(looks_with_more < 12);
  CHECK(tuner.trials() > 0);

  run.what().cost = 6;
  tuner.fix(&ps::tuned_limits::workers, 3);
  tuner.fix(&ps::tuned_limits::depth, 9);
  bool stayed = true;
  tune(run, tuner, 30'000, [&](const ps::tuned_limits& now) {
    stayed = stayed && now == ps::tuned_limits{3, 9, 0, 0};
  });
  CHECK(stayed);
  CHECK(tuner.quiet());
}

TEST_CASE("run/engine/tuning/autotuner: depth is proposed only as far as there is memory") {
  const load what{.cost = 2, .tail = 0.02, .step = 2.2};
  simulated_run run(what);
  ps::autotuner tuner(setup_for(what));
  std::uint64_t deepest = 0, look_at = 0;
  ps::tuned_limits now = tuner.limits();
  while (run.now() < 12'000) {
    if (run.blocks() >= look_at) {
      ps::tuner_totals totals = run.totals();
      totals.max_depth = 8;
      now = tuner.look(totals);
      look_at = run.blocks() + tuner.stride();
      deepest = std::max(deepest, now.depth);
    }
    run.block(now);
  }
  CHECK(tuner.quiet());
  CHECK(deepest == 8);
}

TEST_CASE("run/engine/tuning/autotuner: limits as stages to copy") {
  const ps::tuned_limits usual{2, 5, 256, 64};
  CHECK(ps::as_stages(usual, usual, true).empty());
  CHECK(ps::as_stages({3, 6, 256, 64}, usual, true) == "| batch(...) | prefetch(5) | workers(3)");
  CHECK(ps::as_stages({3, 6, 256, 64}, usual, false) == "| workers(3)");
  CHECK(ps::as_stages({2, 12, 512, 128}, usual, true) ==
        "| prefetch(512, {.max_in_flight = 128}) | batch(...) | prefetch(11)");
  CHECK(ps::as_stages({2, 5, 1024, 64}, usual, true) == "| prefetch(1024) | batch(...)");
}

}  // namespace autotuner_test
