// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/read_ahead.hpp>

#include <penstock/core/error.hpp>
#include <penstock/run/engine/observers.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <mutex>
#include <vector>

namespace ps = penstock;

namespace {

/// Remembers what it was asked for, as indices counted through all epochs.
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

/// Batches of 4 of so many samples, in order.
ps::feed batches_of(std::uint64_t size) {
  ps::feed_facts facts;
  facts.mine = {.size = size, .global = 4, .world = 1, .rank = 0, .lanes = 1, .policy = ps::tail::keep};
  return ps::feed(facts);
}

std::vector<std::uint64_t> numbers_below(std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t i = 0; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE(
    "run/read_ahead: asks for the samples that come, in their order, a given number ahead, across the "
    "epoch's end") {
  listener reader;
  reader.size = 20;
  const ps::run_watch nobody({}, 0, true, false, 0);
  ps::read_ahead ahead;
  ahead.limit(2);  // nothing to limit yet
  ps::feed from = batches_of(20);
  from.limit(2);
  ahead.start(from, reader.hints(), nobody, 8, false);
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

TEST_CASE(
    "run/read_ahead: where a source takes no hints nothing happens, and a hint that fails is no failure") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  ps::read_ahead idle;
  idle.opened(8);
  idle.restart(batches_of(20));
  idle.stop();
  listener reader;
  reader.size = 20;
  reader.throws = true;
  ps::read_ahead ahead;
  ahead.start(batches_of(20), reader.hints(), nobody, 8, false);
  ahead.opened(8);
  reader.throws = false;
  ahead.opened(4);
  CHECK(reader.asked == std::vector<std::uint64_t>{16, 17, 18, 19});
}

TEST_CASE("run/read_ahead: with a thread of its own it stops when told to, whatever it is doing") {
  const ps::run_watch nobody({}, 0, true, false, 0);
  for (int round = 0; round < 30; ++round) {
    listener reader;
    reader.size = 2000;
    ps::read_ahead ahead;
    ahead.start(batches_of(2000), reader.hints(), nobody, 1000, true);
    for (int i = 0; i < round; ++i) ahead.opened(4);
    ahead.stop();
    for (std::size_t i = 0; i < reader.asked.size(); ++i) REQUIRE(reader.asked[i] == i);
  }
}
