// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/throttled.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/disturbed_run.hpp"
#include "support/held_storage.hpp"
#include "support/read_outcomes.hpp"
#include "support/thread_facts.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::disturbed_run;
using penstock_test::eventually;
using penstock_test::held_storage;
using penstock_test::read_outcomes;

using far_memory = ps::simulated_storage<ps::memory_files>;
using gentle_far = ps::throttled<far_memory>;
static_assert(ps::storage<gentle_far> && ps::background_session<gentle_far::session>);
static_assert(ps::session_traits_of<gentle_far::session>().latency);
static_assert(ps::is_local<ps::throttled<ps::file>>());
static_assert(ps::mapped_session<ps::throttled<ps::file>::session>);
static_assert(!ps::background_session<ps::throttled<ps::file>::session>);

namespace {

ps::memory_files letters() { return ps::memory_files().add("a", std::string(10'000, 'x')); }

std::exception_ptr slow_down(std::uint64_t milliseconds) {
  return std::make_exception_ptr(ps::error(ps::errc::io, "slow down").asked_to_wait(milliseconds));
}

/// Reads of one byte each, from offset 0 on.
struct one_byte_reads {
  explicit one_byte_reads(std::size_t count) : bytes(count) {
    for (std::size_t i = 0; i < count; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  }
  std::vector<std::byte> bytes;
  std::vector<ps::read_request> requests;
};

std::vector<std::uint64_t> counting(std::uint64_t from, std::size_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), from);
  return all;
}

}  // namespace

TEST_CASE("storage/throttled: so many reads are in flight, and they begin in order") {
  const held_storage far(letters());
  auto session = ps::throttled(far, {.max_in_flight = 4}).connect();
  one_byte_reads reads(20);
  read_outcomes outcomes(20);
  session.read_many(std::span(reads.requests).first(3), outcomes.listener());
  CHECK(far.reads->offsets() == counting(0, 3));
  session.read_many(std::span(reads.requests).subspan(3), outcomes.listener());
  CHECK(far.reads->offsets() == counting(0, 4));
  far.reads->end(1);
  CHECK(far.reads->offsets() == std::vector<std::uint64_t>{0, 2, 3, 4});
  while (far.reads->count() != 0) {
    CHECK(far.reads->count() <= 4);
    far.reads->end(0);
  }
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  CHECK(session.report().counters == ps::storage_counters{.requests = 20, .bytes = 20});
  CHECK(session.report().max_in_flight == 4);
}

TEST_CASE("storage/throttled: a store that asks for fewer reads halves the limit, successes raise it") {
  const held_storage far(letters());
  auto session = ps::throttled(far, {.max_in_flight = 16}).connect();
  one_byte_reads reads(300);
  read_outcomes outcomes(300);
  session.read_many(reads.requests, outcomes.listener());
  CHECK(far.reads->count() == 16);
  far.reads->end(0, slow_down(0));
  CHECK(session.report().max_in_flight == 8);
  CHECK(far.reads->count() == 15);  // nothing begins until fewer than 8 are in flight
  far.reads->end(0, slow_down(0));  // sent before the limit was halved
  CHECK(session.report().max_in_flight == 8);
  CHECK(far.reads->count() == 14);
  while (far.reads->count() > 8) far.reads->end(0);
  CHECK(session.report().max_in_flight == 8);  // those that were sent before say nothing
  CHECK(far.reads->count() == 8);
  for (std::size_t i = 0; i < 7; ++i) far.reads->end(0);  // the last of the old ones
  CHECK(far.reads->offsets().front() == 15);
  // from here on reads of this round succeed: 8 of them raise the limit to 9, 9 more to 10
  std::size_t limit = 8;
  while (session.report().max_in_flight < 16) {
    far.reads->end(0);
    CHECK(session.report().max_in_flight >= limit);
    limit = session.report().max_in_flight;
    CHECK(far.reads->count() == limit);
  }
  CHECK(far.reads->begun() > 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15);
  for (int i = 0; i < 10; ++i) {
    far.reads->end(0, slow_down(0));
    while (far.reads->count() > session.report().max_in_flight) far.reads->end(0);
    for (std::size_t n = session.report().max_in_flight; n > 1; --n) far.reads->end(0);
  }
  CHECK(session.report().max_in_flight >= 1);
  CHECK(session.report().counters.slow_downs == 12);
  CHECK(session.report().counters.throttled > 5);
  far.reads->end_all();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::io) == 12);
}

TEST_CASE("storage/throttled: the limit never falls below one, and other errors leave it alone") {
  const held_storage far(letters());
  auto session = ps::throttled(far, {.max_in_flight = 4}).connect();
  one_byte_reads reads(40);
  read_outcomes outcomes(40);
  session.read_many(reads.requests, outcomes.listener());
  far.reads->end(0, std::make_exception_ptr(ps::error(ps::errc::io, "broken")));
  CHECK(session.report().max_in_flight == 4);
  CHECK(far.reads->count() == 4);
  for (int i = 0; i < 20; ++i) far.reads->end(0, slow_down(0));
  CHECK(session.report().max_in_flight == 1);
  CHECK(far.reads->count() == 1);
  far.reads->end(0);
  CHECK(session.report().max_in_flight == 2);
  far.reads->end_all();
  CHECK(outcomes.each_once());
  CHECK(session.report().max_in_flight == 4);
}

TEST_CASE("storage/throttled: when the store names a time, no read begins before it is over") {
  const deadline limit("a pause");
  const held_storage far(letters());
  const auto begin = std::chrono::steady_clock::now();
  auto session = ps::throttled(far, {.max_in_flight = 2}).connect();
  one_byte_reads reads(6);
  read_outcomes outcomes(6);
  session.read_many(reads.requests, outcomes.listener());
  far.reads->end(0, slow_down(30));
  far.reads->end(0);
  CHECK(far.reads->count() <= 1);
  std::array<std::byte, 1> one{};
  session.read(0, 0, one);  // waits, too
  CHECK(std::chrono::steady_clock::now() - begin >= 30ms);
  while (!outcomes.each_once()) {
    eventually([&] { return far.reads->count() != 0 || outcomes.each_once(); });
    far.reads->end_all();
  }
  CHECK(outcomes.failures() == 1);

  // a time beyond what is allowed is cut
  const held_storage strange(letters());
  auto short_of = ps::throttled(strange, {.max_in_flight = 2, .max_retry_after = 1ms}).connect();
  read_outcomes later(6);
  short_of.read_many(reads.requests, later.listener());
  strange.reads->end(0, slow_down(~std::uint64_t{0}));
  while (!later.each_once()) {
    eventually([&] { return strange.reads->count() != 0 || later.each_once(); });
    strange.reads->end_all();
  }
}

TEST_CASE("storage/throttled: a blocking read comes before those in the background") {
  const deadline limit("a blocking read between others");
  const held_storage far(letters());
  auto session = ps::throttled(far, {.max_in_flight = 1}).connect();
  one_byte_reads reads(3);
  read_outcomes outcomes(3);
  session.read_many(reads.requests, outcomes.listener());
  std::atomic<bool> has_read{false};
  std::atomic<pid_t> id{0};
  std::array<std::byte, 1> one{};
  std::thread reader([&] {
    id = penstock_test::thread_facts().id;
    session.read(0, 9, one);
    has_read = true;
  });
  eventually([&] { return id != 0 && penstock_test::is_asleep(id); });  // it waits for room
  far.reads->end(0);
  eventually([&] {
    far.reads->end_all();
    return has_read && outcomes.each_once();
  });
  reader.join();
  CHECK(far.reads->begun_before_blocking() == 1);
  CHECK(outcomes.failures() == 0);
  CHECK(ps::text_of(one) == "x");
}

TEST_CASE("storage/throttled: cancel ends a thousand reads that wait, and the session can be used again") {
  const deadline limit("cancelling a thousand waits");
  const held_storage far(letters());
  auto session = ps::throttled(far, {.max_in_flight = 3}).connect();
  session.cancel();
  one_byte_reads reads(1000);
  read_outcomes outcomes(1000), second(2);
  session.read_many(reads.requests, outcomes.listener());
  std::atomic<int> stopped{0};
  std::atomic<pid_t> id{0};
  std::thread reader([&] {
    std::array<std::byte, 1> one{};
    id = penstock_test::thread_facts().id;
    try {
      session.read(0, 9, one);
    } catch (const ps::error& e) {
      if (e.code() == ps::errc::stopped) ++stopped;
    }
  });
  CHECK(far.reads->begun() == 3);
  eventually([&] { return id != 0 && penstock_test::is_asleep(id); });
  session.cancel();
  outcomes.wait();
  reader.join();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 1000);
  CHECK(stopped == 1);
  CHECK(far.reads->begun() == 3);
  session.read_many(std::span(reads.requests).first(2), second.listener());
  far.reads->end_all();
  second.wait();
  CHECK(second.failures() == 0);
}

TEST_CASE("storage/throttled: a session that ends reports each of its reads") {
  const deadline limit("ending a session with reads that wait");
  const held_storage far(letters());
  one_byte_reads reads(500);
  read_outcomes outcomes(500);
  {
    auto session = ps::throttled(far, {.max_in_flight = 100}).connect();
    session.read_many(reads.requests, outcomes.listener());
    far.reads->end(0, slow_down(60'000));
  }
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 499);
}

TEST_CASE("storage/throttled: retries around it reach every byte of a store that refuses most reads") {
  const deadline limit("reads of a store that refuses most");
  const far_memory far(letters(), {.latency = 300us, .slow_down_above = 4, .asks_to_wait = 1ms});
  const ps::retrying retried(ps::throttled(far, {.max_in_flight = 64}),
                             {.attempts = 100, .initial_backoff = 1ms, .max_backoff = 2ms, .budget = 0});
  CHECK(retried.describe() ==
        "retrying(throttled(" + far.describe() + ", at most 64 at once), 100 attempts)");
  auto session = retried.connect();
  one_byte_reads reads(2000);
  read_outcomes outcomes(2000);
  session.read_many(reads.requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  const ps::storage_counters counted = session.report().counters;
  CHECK(counted.slow_downs > 0);
  CHECK(counted.throttled > 0);
  CHECK(counted.retries == counted.slow_downs);
  CHECK(counted.requests == 2000 + counted.retries);
  CHECK(counted.bytes == 2000);
  CHECK(far.peak_in_flight() <= 64);
}

TEST_CASE("storage/throttled: threads that read and cancel at once") {
  const deadline limit("threads that read and cancel");
  const far_memory far(letters(), {.latency = 0ms, .jitter = 500us, .slow_down_above = 3});
  auto session = ps::throttled(far, {.max_in_flight = 5}).connect();
  std::atomic<bool> wrong{false};
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      std::array<std::byte, 50> bytes{};
      for (std::uint64_t i = 0; i < 50; ++i) {
        try {
          session.read(0, i, bytes);
          if (ps::text_of(bytes) != std::string(50, 'x')) wrong = true;
        } catch (const ps::error& e) {
          if (e.code() != ps::errc::stopped && e.code() != ps::errc::io) wrong = true;
        }
      }
    });
  }
  for (int round = 0; round < 30; ++round) {
    one_byte_reads reads(100);
    read_outcomes outcomes(100);
    session.read_many(reads.requests, outcomes.listener());
    if (round % 3 == 1) std::this_thread::sleep_for(300us);
    if (round % 3 != 0) session.cancel();
    outcomes.wait();
    CHECK(outcomes.each_once());
  }
  for (std::thread& reader : readers) reader.join();
  CHECK_FALSE(wrong);
  CHECK(far.in_flight() == 0);
}

namespace {

/// Every other read is asked to wait for a millisecond.
struct busy_storage {
  std::vector<std::string> list{"x"};
  struct session {
    mutable std::atomic<int> reads{0};

    [[nodiscard]] std::uint64_t size(ps::object_id) const { return 8; }
    [[nodiscard]] ps::object_version version(ps::object_id) const { return {8, 0}; }
    void read(ps::object_id, std::uint64_t, ps::mutable_bytes) const {
      if (reads++ % 2 == 0) std::rethrow_exception(slow_down(1));
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const {}
    void cancel() const noexcept {}
  };
  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {}; }
};

}  // namespace

TEST_CASE("storage/throttled: a read that comes while a pause ends waits for nothing") {
  const deadline limit("the end of a pause", 60s);
  const auto session = ps::throttled(busy_storage(), {.max_in_flight = 4}).connect();
  std::array<std::byte, 8> into{};
  for (unsigned round = 0; round < 1500; ++round) {
    CHECK_THROWS_WITH(session.read(0, 0, into), contains("slow down"));
    // 0 to 6 microseconds before the pause is over
    const auto then = std::chrono::steady_clock::now() + 1ms - std::chrono::nanoseconds(round * 97 % 6000);
    while (std::chrono::steady_clock::now() < then) {
    }
    session.read(0, 0, into);
  }
}

TEST_CASE("storage/throttled: a run delivers the bytes of an unlimited one") {
  const deadline limit("throttled runs");
  const auto shards = penstock_test::disturbed_shards();
  const disturbed_run right(shards, 0);
  for (const unsigned threads : {0u, 1u, 2u}) {
    for (const std::size_t max_in_flight : {1u, 3u}) {
      const disturbed_run seen(
          ps::throttled(far_memory(shards, {.latency = 50us}), {.max_in_flight = max_in_flight}), threads);
      CHECK((seen.bytes == right.bytes));  // as texts they would fill pages
      CHECK(seen.counters.requests > 0);
      CHECK(seen.counters.bytes > 0);
    }
    const disturbed_run mixed(
        ps::throttled(ps::retrying(far_memory(shards, {.latency = 50us, .failing = 0.2}),
                                   {.initial_backoff = 1ms, .budget = 0}),
                      {.max_in_flight = 2}),
        threads);
    CHECK((mixed.bytes == right.bytes));  // as texts they would fill pages
    CHECK(mixed.counters.retries > 0);
  }
}

TEST_CASE("storage/throttled: options out of range are refused") {
  const auto refuses = [](ps::throttled_options options, const char* why) {
    CHECK_THROWS_WITH(ps::throttled(ps::memory_files(), options), contains(why));
  };
  refuses({.max_in_flight = 0}, "at least one read");
  refuses({.max_retry_after = -1ms}, "not -1 ms");
}
