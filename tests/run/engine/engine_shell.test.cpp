// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/engine_shell.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace engine_shell_test {

namespace ps = penstock;

namespace {

/// A stand-in for the plan that counts the shell's calls; a block holds the numbers of its
/// positions.
class counting_plan {
 public:
  struct numbers : ps::block {
    std::vector<std::uint64_t> rows_filled;
  };
  struct worker : ps::engine_worker {};

  explicit counting_plan(unsigned workers, std::uint64_t samples = 40, std::uint64_t memory = 0) {
    ps::feed_facts facts;
    facts.mine = {.size = samples, .global = 4, .world = 1, .rank = 0, .lanes = 1, .policy = ps::tail::keep};
    setup_.options.workers = workers;
    if (memory != 0) setup_.options.memory = memory;
    setup_.options.ahead = 8;
    setup_.leading = ps::feed(facts);
    setup_.depth = 3;
    setup_.grain_slots = 2;
    setup_.facts.direct = true;
    setup_.sizes_are_fixed = true;
    setup_.stages = {"numbers", "nothing"};
  }
  [[nodiscard]] ps::engine_setup setup() const { return setup_; }
  [[nodiscard]] ps::hinter hints() {
    return {this, [](void* e, const ps::placement& samples) { self(e).hinted += samples.batches[0].valid; }};
  }

  std::atomic<int> made{0}, destroyed{0}, prepared{0}, grains{0}, finished{0}, begun{0}, fronts{0},
      cancelled{0};
  std::atomic<std::uint64_t> hinted{0};
  bool refuses = false;

  static counting_plan& self(void* e) noexcept { return *static_cast<counting_plan*>(e); }
  static const ps::engine_calls calls;

 private:
  ps::engine_setup setup_;
};

const ps::engine_calls counting_plan::calls{
    .make = [](void* e) -> ps::block* { return ++self(e).made, new numbers; },
    .destroy = [](ps::block* b) noexcept { delete static_cast<numbers*>(b); },
    .prepare =
        [](void* e, ps::block& b) {
          if (self(e).refuses) throw ps::error(ps::errc::io, "no room");
          ++self(e).prepared;
          static_cast<numbers&>(b).rows_filled.assign(static_cast<std::size_t>(b.slots), 0);
        },
    .held = [](const ps::block&) noexcept { return std::uint64_t{100}; },
    .release = [](ps::block&) noexcept {},
    .settle = [](void*, ps::block&) {},
    .leave = [](void*, ps::block&) {},
    .start_copy = [](void*, ps::block&) {},
    .end_copy = [](void*, ps::block&) {},
    .make_worker = []() -> ps::engine_worker* { return new worker; },
    .destroy_worker = [](ps::engine_worker* w) noexcept { delete static_cast<worker*>(w); },
    .expect = [](void*, std::size_t) noexcept {},
    .evaluate =
        [](void* e, ps::engine_worker&, ps::block& b, std::uint64_t, std::uint64_t grain, bool,
           bool) noexcept {
          ++self(e).grains;
          const std::uint64_t first = grain * 2, last = std::min(first + 2, b.slots);
          for (std::uint64_t row = first; row < last; ++row)
            static_cast<numbers&>(b).rows_filled[static_cast<std::size_t>(row)] = 1 + b.index(row);
          return last - std::min(first, last);
        },
    .finish = [](void* e, ps::engine_worker&, ps::block&) noexcept { ++self(e).finished; },
    .costs =
        [](const ps::engine_worker&, std::span<ps::stage_cost> into) noexcept {
          for (ps::stage_cost& one : into) one = {10, 1};
        },
    .restart_front = [](void* e, std::span<const std::uint64_t>) { ++self(e).fronts; },
    .stop_front = [](void*) noexcept {},
    .cancel_reads = [](void* e) noexcept { ++self(e).cancelled; },
    .report = [](void*) { return ps::session_report(); }};

/// A shell with its stand-in plan.
struct running {
  explicit running(counting_plan& plan, std::uint64_t epochs = 1)
      : shell(counting_plan::calls, &plan, plan.setup(), nullptr, std::stop_token{}) {
    shell.limit(epochs);
    shell.start(plan.hints());
  }
  ~running() { shell.stop(); }
  ps::engine_shell shell;
};

}  // namespace

TEST_CASE(
    "run/engine_shell: blocks come complete and in order, with one or two calls of each kind per block") {
  const penstock_test::deadline guard("shell");
  for (const unsigned workers : {0u, 1u, 3u}) {
    counting_plan plan(workers);
    running one(plan);
    std::uint64_t expected = 0;
    while (ps::block* const b = one.shell.next()) {
      for (const std::uint64_t value : static_cast<counting_plan::numbers&>(*b).rows_filled)
        CHECK(value == ++expected);
      one.shell.delivered(b->slots, 100);
      one.shell.delivered_feed().advance();
      one.shell.give_back(b);
    }
    CHECK(expected == 40);
    CHECK(plan.prepared == 10);
    CHECK(plan.finished == 10);
    CHECK(plan.grains == 20);
    CHECK(plan.made <= 3);
    CHECK(plan.cancelled == 0);
    one.shell.stop();
    CHECK(plan.cancelled > 0);
    CHECK(plan.hinted <= 40);
    const ps::run_counters all = one.shell.counters();
    CHECK(all.samples == 40);
    CHECK(all.batches == 10);
    REQUIRE(all.stages.size() == 2);
    CHECK(all.stages[1].name == "nothing");
  }
}

TEST_CASE("run/engine_shell: a restart drops open blocks, and tells the front") {
  const penstock_test::deadline guard("reposition");
  counting_plan plan(2);
  running one(plan, 3);
  ps::block* const first = one.shell.next();
  REQUIRE(first != nullptr);
  one.shell.give_back(first);
  one.shell.reposition([](ps::feed& f) { f.seek(2, 5); });
  CHECK(plan.fronts == 1);
  CHECK(one.shell.delivered_feed().epoch() == 2);
  ps::block* const there = one.shell.next();
  REQUIRE(there != nullptr);
  CHECK(there->epoch == 2);
  CHECK(there->index(0) == 20);
  one.shell.give_back(there);
}

TEST_CASE("run/engine_shell: requesting another block while holding all throws immediately") {
  const penstock_test::deadline guard("holds all");
  counting_plan plan(1);
  running one(plan);
  std::vector<ps::block*> held;
  for (int i = 0; i < 3; ++i) held.push_back(one.shell.next());
  CHECK_THROWS_WITH(one.shell.next(), penstock_test::contains("you hold 3 of 3 batches"));
  for (ps::block* const b : held) one.shell.give_back(b);
  ps::block* const next = one.shell.next();
  CHECK(next != nullptr);
  one.shell.give_back(next);
}

TEST_CASE("run/engine_shell: memory bounds the blocks, and a block that cannot be prepared ends the run") {
  const penstock_test::deadline guard("memory");
  counting_plan small(0, 40, 100);
  {
    running one(small);
    ps::block* const b = one.shell.next();
    REQUIRE(b != nullptr);
    CHECK_FALSE(one.shell.room_for_another());
    one.shell.give_back(b);
  }
  counting_plan refusing(1);
  refusing.refuses = true;
  running one(refusing);
  CHECK_THROWS_WITH(one.shell.next(), penstock_test::contains("no room"));
  CHECK(one.shell.stopped());
  CHECK(one.shell.next() == nullptr);
}

}  // namespace engine_shell_test
