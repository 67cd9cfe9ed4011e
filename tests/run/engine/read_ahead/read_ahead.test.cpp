// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/read_ahead/read_ahead.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/storage/concepts.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace read_ahead_test {

namespace ps = penstock;

namespace {

/// Records the requests, as indices counted through all epochs.
struct listener {
  std::uint64_t size = 0;
  bool throws = false;
  std::mutex lock;
  std::vector<std::uint64_t> asked;

  ps::hinter hints() {
    return {this, [](void* self, const ps::placement& samples) {
              auto& me = *static_cast<listener*>(self);
              if (me.throws) throw ps::error(ps::errc::io, "no hints today");
              const std::lock_guard guard(me.lock);
              for (std::uint64_t row = 0; row < samples.batches[0].valid; ++row)
                me.asked.push_back(samples.epoch * me.size + samples.index(row));
            }};
  }
};

/// A feed of `size` samples, in order, in batches of 4.
ps::feed batches_of(std::uint64_t size) {
  ps::feed_facts facts;
  facts.mine = {.size = size, .global = 4, .world = 1, .rank = 0, .lanes = 1, .policy = ps::tail::keep};
  return ps::feed(facts);
}

/// A cut into steps of 4 that waits while `go` is false, and can be stopped.
struct slow_cut {
  ps::cut steps;
  std::atomic<bool>* go;
  std::atomic<int>* begun;

  [[nodiscard]] ps::cut bind(std::uint64_t, const std::atomic<bool>* stop = nullptr) const {
    for (++*begun; !*go; std::this_thread::yield())
      if (stop != nullptr && *stop) throw ps::pass_stopped{};
    return steps;
  }
  [[nodiscard]] slow_cut on(std::uint64_t, std::uint64_t) const { return *this; }
  [[nodiscard]] std::uint64_t usual() const { return 4; }
};

/// A session whose bytes are in memory while `in_memory` says so, and how often a block was looked at.
struct warming {
  std::atomic<bool> in_memory{true};
  std::atomic<std::uint64_t> looks{0}, reads{0};
  std::vector<std::uint64_t> hinted;

  [[nodiscard]] static std::uint64_t size(ps::object_id) { return 1u << 20; }
  [[nodiscard]] static ps::object_version version(ps::object_id) { return {}; }
  void read(ps::object_id, std::uint64_t, ps::mutable_bytes) { ++reads; }
  void will_need(ps::object_id, std::uint64_t offset, std::uint64_t) { hinted.push_back(offset); }
  [[nodiscard]] bool resident(ps::object_id) const { return in_memory; }

  ps::hinter ranges() {
    return {this, nullptr, [](void* self, const ps::placement& samples, ps::range_list& into) {
              auto& me = *static_cast<warming*>(self);
              ++me.looks;
              into.stand_at(samples.run_row);
              into(me, 0, 4 * (samples.run_row % 1000), 4);
            }};
  }
};

std::vector<std::uint64_t> numbers_below(std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE(
    "run/read_ahead: requests upcoming samples in order, a given number ahead, across the epoch's end") {
  listener reader;
  reader.size = 20;
  const ps::run_watch nobody({}, 0, true, false, 0);
  ps::read_ahead ahead;
  ahead.limit(2);  // nothing to limit yet
  ps::feed from = batches_of(20);
  from.limit(2);
  const ps::live_limits limits(0, 1, 1, 8);
  ahead.start(from, reader.hints(), nobody, limits, false, {});
  ahead.opened(16);
  CHECK(reader.asked == numbers_below(24));
  ahead.restart(from);
  reader.asked.clear();
  ahead.opened(0);
  CHECK(reader.asked == numbers_below(8));
  ahead.limit(0);
  ahead.opened(8);
  CHECK(reader.asked == numbers_below(8));
}

TEST_CASE("run/read_ahead: where nothing is fetched, a source that only has ranges is given them as hints") {
  warming reader;
  reader.in_memory = false;
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(0, 1, 1, 8);
  ps::read_ahead ahead;
  ps::feed from = batches_of(20);
  from.limit(1);
  ahead.start(from, reader.ranges(), nobody, limits, false, {});
  ahead.opened(8);
  CHECK(reader.hinted == std::vector<std::uint64_t>{0, 16, 32, 48});
  reader.in_memory = true;  // of a session that only maps, whatever is in memory
  ahead.opened(4);
  CHECK(reader.hinted == std::vector<std::uint64_t>{0, 16, 32, 48, 64});
  CHECK(reader.looks == 5);
  CHECK(reader.reads == 0);
}

TEST_CASE("run/read_ahead: a source without hints gets none, and a failing hint is not a failure") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  ps::read_ahead idle;
  idle.opened(8);
  idle.restart(batches_of(20));
  idle.stop();
  listener reader;
  reader.size = 20;
  reader.throws = true;
  ps::read_ahead ahead;
  const ps::live_limits limits(0, 1, 1, 8);
  ahead.start(batches_of(20), reader.hints(), nobody, limits, false, {});
  ahead.opened(8);
  reader.throws = false;
  ahead.opened(4);
  CHECK(reader.asked == std::vector<std::uint64_t>{16, 17, 18, 19});
}

TEST_CASE("run/read_ahead: its thread stops when told to, whatever it is doing") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  for (int round = 0; round < 30; ++round) {
    listener reader;
    reader.size = 2000;
    const ps::live_limits limits(1, 1, 1, 1000);
    ps::read_ahead ahead;
    ahead.start(batches_of(2000), reader.hints(), nobody, limits, true, {});
    for (int i = 0; i < round; ++i) ahead.opened(4);
    ahead.stop();
    for (std::size_t i = 0; i < reader.asked.size(); ++i) REQUIRE(reader.asked[i] == i);
  }
}

TEST_CASE("run/read_ahead: a restart does not wait until everything has been requested") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(1, 1, 1, 4000);
  std::atomic<int> asked{0};
  const auto list = [](void* self, const ps::placement&, ps::range_list&) {
    ++*static_cast<std::atomic<int>*>(self);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  ps::read_ahead ahead;
  ahead.start(batches_of(8000), {&asked, nullptr, list}, nobody, limits, true, {1 << 20, 8192});
  ahead.opened(4);
  for (int round = 0; round < 3; ++round) {
    while (asked == 0) std::this_thread::yield();
    ahead.restart(batches_of(8000));  // and requests start immediately
    CHECK(asked.exchange(0) < 500);
  }
}

TEST_CASE("run/read_ahead: further epochs are requested when they are allowed, although nothing is opened") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(1, 1, 1, 1000);
  listener reader;
  reader.size = 20;
  ps::feed from = batches_of(20);
  from.limit(0);
  const penstock_test::deadline late("requests for further epochs");
  ps::read_ahead ahead;
  ahead.start(from, reader.hints(), nobody, limits, true, {});
  // The thread looks at the feed meanwhile, or has gone to sleep.
  for (std::size_t epochs = 1; epochs <= 40; ++epochs) {
    if (epochs % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ahead.limit(epochs);
    for (std::size_t asked = 0; asked < 20 * epochs; std::this_thread::yield()) {
      const std::lock_guard guard(reader.lock);
      asked = reader.asked.size();
    }
  }
  ahead.stop();
  CHECK(reader.asked == numbers_below(20 * 40));
}

TEST_CASE("run/read_ahead: a failed allocation is one sentence") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(1, 1, 1, 8);
  int asked = 0;
  const auto list = [](void*, const ps::placement&, ps::range_list&) {};
  ps::read_ahead ahead;
  CHECK_THROWS_WITH(ahead.start(batches_of(20), {&asked, nullptr, list}, nobody, limits, true,
                                {std::uint64_t{1} << 62, 64}),
                    Catch::Contains("does not give 4611686018427387904 bytes") &&
                        Catch::Contains("prefetch(64_MiB)") && Catch::Contains("prefetch(0)"));
  CHECK(ahead.store() == nullptr);
}

TEST_CASE(
    "run/read_ahead: no thread waits while the next epoch is cut, and a stop or a restart ends the cut") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(1, 1, 1, 8);
  for (const bool stops : {true, false}) {
    std::atomic<bool> go{false}, stop{false};
    std::atomic<int> begun{0};
    ps::feed_facts facts;
    facts.mine = {.size = 20, .global = 4};
    facts.uneven = ps::any_step_cut(slow_cut{facts.mine, &go, &begun});
    ps::feed from(facts);
    from.stop_at(stop);
    from.limit(2);
    listener reader;
    reader.size = 20;
    ps::read_ahead ahead;
    ahead.start(from, reader.hints(), nobody, limits, true, {});
    while (begun == 0) std::this_thread::yield();
    ahead.opened(4);  // returns, and so do the calls below
    ahead.limit(1);
    ahead.look_again();
    ahead.restart(from);
    ahead.opened(16);
    (stops ? stop : go) = true;
    if (!stops)
      for (std::size_t asked = 0; asked < 24; std::this_thread::yield()) {
        const std::lock_guard guard(reader.lock);
        asked = reader.asked.size();
      }
    ahead.stop();
    CHECK(reader.asked == numbers_below(stops ? 0 : 24));
  }
}

TEST_CASE("run/read_ahead: a changing limit; at 0 nothing is requested, and later only what is still ahead") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  ps::live_limits limits(0, 1, 1, 8);
  listener reader;
  reader.size = 2000;
  ps::read_ahead ahead;
  ahead.start(batches_of(2000), reader.hints(), nobody, limits, false, {});
  ahead.opened(4);
  CHECK(reader.asked == numbers_below(12));
  limits.adjust({.ahead = 0});
  ahead.look_again();
  ahead.opened(96);
  CHECK(reader.asked == numbers_below(12));
  limits.adjust({.ahead = 4});
  ahead.look_again();
  ahead.opened(0);
  CHECK(reader.asked.size() == 16);
  CHECK(reader.asked.back() == 103);
}

TEST_CASE("run/read_ahead: bytes in memory are looked at now and then, and fetched once they are not there") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  const ps::live_limits limits(1, 1, 1, 64);
  warming session;
  ps::read_ahead ahead;
  ahead.start(batches_of(4'000'000), session.ranges(), nobody, limits, true, {1u << 20, 4096});
  std::uint64_t blocks = 0;
  const auto open_until = [&](auto&& seen) {
    for (; !seen() && blocks < 900'000; std::this_thread::yield()) {
      ahead.opened(4);
      ahead.passed(4 * blocks++);
    }
    return seen();
  };
  REQUIRE(open_until([&] { return blocks >= 100'000; }));
  const std::uint64_t looks = session.looks;
  CHECK(looks < blocks / 16);
  // Workers are told of the blocks that are skipped, so that they need not look for their bytes.
  CHECK(open_until([&] { return ahead.store()->left_out(4 * blocks, 4 * blocks + 4); }));
  CHECK(open_until([&] { return session.looks > looks + 3; }));
  CHECK(session.reads == 0);
  session.in_memory = false;
  CHECK(open_until([&] { return session.reads >= 10; }));
  CHECK_FALSE(ahead.store()->left_out(4 * blocks + 64, 4 * blocks + 68));
  session.in_memory = true;
  const std::uint64_t reads = session.reads;
  CHECK(open_until([&] { return session.looks > looks + 100; }));
  CHECK(session.reads < reads + 1000);
  ahead.stop();
}

}  // namespace read_ahead_test
