// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/hedged.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/resilience/retry_queue.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/disturbed_run.hpp"
#include "support/held_storage.hpp"
#include "support/read_outcomes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::abandoning_storage;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::disturbed_run;
using penstock_test::eventually;
using penstock_test::held_storage;
using penstock_test::read_outcomes;

using far_memory = ps::simulated_storage<ps::memory_files>;
using safe_far = ps::hedged<far_memory>;
static_assert(ps::storage<safe_far> && ps::background_session<safe_far::session>);
static_assert(ps::session_traits_of<safe_far::session>().latency);
static_assert(ps::is_local<ps::hedged<ps::simulated_storage<ps::file>>>());
static_assert(ps::abandons<abandoning_storage::session>());
static_assert(!ps::abandons<held_storage::session>());

namespace {

std::string content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
ps::memory_files one_file() { return ps::memory_files().add("a", content(10'000)); }
constexpr ps::hedged_options eager{.max_extra_requests = 1, .observations = 1, .min_delay = 0us};
std::exception_ptr failure(const char* why) { return std::make_exception_ptr(ps::error(ps::errc::io, why)); }

/// A read that ends at once, so that the session knows how long one takes, and then one that is late.
template <class Storage>
struct late_read {
  explicit late_read(const Storage& where) : reads(where.reads), session(ps::hedged(where, eager).connect()) {
    const ps::read_listener nobody{nullptr, [](void*, std::uint64_t, std::exception_ptr) noexcept {}};
    session.read_many(std::vector<ps::read_request>{{0, 0, bytes, 0}}, nobody);
    reads->end(0);
    bytes.fill(std::byte{0});
    session.read_many(std::vector<ps::read_request>{{0, 100, bytes, 0}}, outcomes.listener());
    eventually([&] { return reads->count() == 2; });
  }
  [[nodiscard]] bool right() const { return ps::text_of(bytes) == content(120).substr(100, 16); }

  std::shared_ptr<penstock_test::held_reads> reads;
  std::array<std::byte, 16> bytes{};
  read_outcomes outcomes{1};
  decltype(ps::hedged(std::declval<Storage>()).connect()) session;
};

}  // namespace

TEST_CASE("storage/hedged: a second read that ends first wins, and the first does no harm later") {
  const deadline limit("a second read wins");
  const held_storage far(one_file());
  late_read late(far);
  CHECK(late.reads->offsets() == std::vector<std::uint64_t>{100, 100});
  late.reads->end(1);
  CHECK(late.outcomes.ended() == 1);
  CHECK(late.right());
  late.bytes.fill(std::byte{7});
  late.reads->end(0);  // the caller's memory may be in use for something else by now
  CHECK(std::count(late.bytes.begin(), late.bytes.end(), std::byte{7}) == 16);
  CHECK(late.outcomes.each_once());
  CHECK(late.outcomes.failures() == 0);
  CHECK(late.session.report().counters ==
        ps::storage_counters{.requests = 3, .bytes = 32, .hedges = 1, .hedges_won = 1});
  CHECK(late.session.report().requests.durations.count() == 3);
}

TEST_CASE("storage/hedged: where a read can be abandoned, the caller waits until it has ended") {
  const deadline limit("a second read wins over one that is abandoned");
  const abandoning_storage far(one_file());
  late_read late(far);
  late.reads->end(1);
  CHECK(late.reads->count() == 0);
  CHECK(late.reads->abandons() == 1);
  CHECK(late.outcomes.ended() == 1);
  CHECK(late.outcomes.failures() == 0);
  CHECK(late.right());
  CHECK(late.session.report().counters.hedges_won == 1);
}

TEST_CASE("storage/hedged: a first read that ends first wins, and the second is ignored") {
  const deadline limit("a first read wins");
  const held_storage far(one_file());
  late_read late(far);
  late.reads->end(0);
  CHECK(late.outcomes.ended() == 1);
  CHECK(late.right());
  late.reads->end(0);
  CHECK(late.outcomes.each_once());
  CHECK(late.session.report().counters.hedges_won == 0);
  const abandoning_storage other(one_file());
  late_read second(other);
  second.reads->end(0);
  CHECK(second.reads->count() == 0);  // the second was abandoned
  CHECK(second.right());
  CHECK(second.outcomes.failures() == 0);
}

TEST_CASE("storage/hedged: if one of the two fails, the other counts; if both do, the error is the first's") {
  const deadline limit("reads of which one or two fail");
  const auto ends = [](const auto& far) {
    late_read first_fails(far);
    first_fails.reads->end(0, failure("the first"));
    CHECK(first_fails.outcomes.ended() == 0);
    first_fails.reads->end(0);
    CHECK(first_fails.right());
    CHECK(first_fails.outcomes.failures() == 0);
    late_read second_fails(far);
    second_fails.reads->end(1, failure("the second"));
    CHECK(second_fails.outcomes.ended() == 0);
    second_fails.reads->end(0);
    CHECK(second_fails.right());
    for (const std::size_t order : {0u, 1u}) {
      late_read both_fail(far);
      both_fail.reads->end(order, failure(order == 0 ? "the first" : "the second"));
      CHECK(both_fail.outcomes.ended() == 0);
      both_fail.reads->end(0, failure(order == 1 ? "the first" : "the second"));
      REQUIRE(both_fail.outcomes.error_of(0));
      CHECK(both_fail.outcomes.error_of(0)->message() == "the first");
      CHECK(both_fail.outcomes.each_once());
    }
  };
  ends(held_storage(one_file()));
  ends(abandoning_storage(one_file()));
}

TEST_CASE("storage/hedged: there are at most so many second reads as the share says") {
  const deadline limit("four hundred late reads");
  const held_storage far(one_file());
  auto session = ps::hedged(far, {.max_extra_requests = 0.05, .observations = 1, .min_delay = 0us}).connect();
  std::vector<std::byte> bytes(400);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 400; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  read_outcomes outcomes(400);
  session.read_many(requests, outcomes.listener());
  CHECK(far.reads->count() == 400);  // too few are known to call one late
  far.reads->end(0);
  eventually([&] { return far.reads->count() == 399 + 20; });
  std::this_thread::sleep_for(5ms);
  CHECK(far.reads->count() == 399 + 20);
  const auto all = far.reads->offsets();
  for (std::size_t i = 0; i < 20; ++i) CHECK(all[399 + i] == i + 1);  // the oldest come first
  far.reads->end_all();
  CHECK(outcomes.each_once());
  CHECK(session.report().counters == ps::storage_counters{.requests = 420, .bytes = 400, .hedges = 20});
}

TEST_CASE("storage/hedged: what is late depends on 98 of 100 recent reads, and on their median") {
  ps::detail::read_times times;
  times.need(32);
  for (int i = 0; i < 31; ++i) CHECK_FALSE(times.add(10ms));
  CHECK_FALSE(times.late());
  CHECK(times.add(10ms));
  CHECK(times.late() == 30ms);
  for (int i = 0; i < 224; ++i) static_cast<void>(times.add(i % 10 == 0 ? 40ms : 10ms));
  CHECK(times.late() == 40ms);
  // one in a hundred stalls
  for (int i = 0; i < 256; ++i) static_cast<void>(times.add(i % 100 == 0 ? 2s : 10ms));
  CHECK(times.late() == 30ms);
  for (int i = 0; i < 256; ++i) static_cast<void>(times.add(1h * 10'000));  // more than it can count
  CHECK(times.late() > 1h);
}

TEST_CASE("storage/hedged: cancel and the end of a session report each read once") {
  const deadline limit("cancelling reads that are hedged");
  std::vector<std::byte> bytes(1000);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 1000; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  const auto ends = [&](const auto& far) {
    read_outcomes first(1000), second(1000);
    {
      auto session = ps::hedged(far, eager).connect();
      session.cancel();
      session.read_many(requests, first.listener());
      far.reads->end(0);
      eventually([&] { return far.reads->count() > 1000; });
      far.reads->end(999);  // the first of the second reads
      session.cancel();
      first.wait();
      CHECK(first.each_once());
      CHECK(first.failures(ps::errc::stopped) == 998);
      session.read_many(requests, second.listener());
      eventually([&] { return far.reads->count() > 1000; });
    }
    CHECK(second.each_once());
    CHECK(second.failures(ps::errc::stopped) == 1000);
    CHECK(far.reads->count() == 0);
  };
  ends(held_storage(one_file()));
  ends(abandoning_storage(one_file()));
}

TEST_CASE("storage/hedged: blocking reads are hedged, too, and cancelled") {
  const deadline limit("blocking reads that are late");
  const held_storage far(one_file());
  late_read late(far);
  late.reads->end_all();
  std::array<std::byte, 10> bytes{};
  std::thread reader([&] { late.session.read(0, 7, bytes); });
  eventually([&] { return late.reads->count() == 2; });
  late.reads->end(1);
  reader.join();
  CHECK(ps::text_of(bytes) == content(20).substr(7, 10));
  late.reads->end(0);
  std::exception_ptr seen;
  std::thread stopped([&] {
    try {
      late.session.read(0, 7, bytes);
    } catch (...) {
      seen = std::current_exception();
    }
  });
  eventually([&] { return late.reads->count() != 0; });
  late.session.cancel();
  stopped.join();
  REQUIRE(seen);
  CHECK_THROWS_WITH(std::rethrow_exception(seen), contains("cancelled"));

  const far_memory simulated(one_file(), {.latency = 0us});
  const ps::hedged safe(simulated);
  const auto session = safe.connect();
  CHECK(session.size(0) == 10'000);
  CHECK(session.version(0).size == 10'000);
  CHECK_THROWS_WITH(session.read(0, 9'999, bytes), contains("ends at 10000"));
  CHECK(safe.describe() == "hedged(" + simulated.describe() + ", at most 5 % more reads)");
}

TEST_CASE("storage/hedged: threads that read and cancel at once") {
  const deadline limit("threads that read and cancel");
  const std::string all = content(10'000);
  const far_memory far(one_file(),
                       {.latency = 0ms, .jitter = 300us, .failing = 0.1, .stall_one_in = 60, .stall = 20ms});
  const auto hammer = [&](auto& session) {
    std::atomic<bool> wrong{false};
    std::vector<std::thread> readers;
    for (unsigned t = 0; t < 3; ++t) {
      readers.emplace_back([&, t] {
        std::array<std::byte, 50> bytes{};
        for (std::uint64_t i = 0; i < 50; ++i) {
          try {
            session.read(0, t * 1000 + i, bytes);
            if (ps::text_of(bytes) != all.substr(t * 1000 + i, 50)) wrong = true;
          } catch (const ps::error& e) {
            if (e.code() != ps::errc::stopped && e.code() != ps::errc::io) wrong = true;
          }
        }
      });
    }
    for (std::uint64_t round = 0; round < 30; ++round) {
      std::vector<std::byte> bytes(100 * 20);
      std::vector<ps::read_request> requests;
      for (std::size_t i = 0; i < 100; ++i)
        requests.push_back({0, 3000 + i * 20 + round, {bytes.data() + i * 20, 20}, i});
      read_outcomes outcomes(100);
      session.read_many(requests, outcomes.listener());
      if (round % 3 == 1) std::this_thread::sleep_for(1ms);
      if (round % 3 != 0) session.cancel();
      outcomes.wait();
      CHECK(outcomes.each_once());
      for (std::size_t i = 0; i < 100; ++i)
        if (!outcomes.failed(i) && ps::text_of(requests[i].into) != all.substr(requests[i].offset, 20))
          wrong = true;
    }
    for (std::thread& reader : readers) reader.join();
    CHECK_FALSE(wrong);
  };
  auto abandons = ps::hedged(far, eager).connect();
  hammer(abandons);
  auto copies = ps::hedged(ps::throttled(far), eager).connect();
  hammer(copies);
}

TEST_CASE("storage/hedged: buffers are bounded, and given back") {
  const deadline limit("bounded buffers");
  ps::hedged_options few = eager;
  few.bytes = 3000;
  const auto run = [&](const auto& far, bool abandons) {
    auto session = ps::hedged(far, few).connect();
    const ps::read_listener nobody{nullptr, [](void*, std::uint64_t, std::exception_ptr) noexcept {}};
    std::string into(6000, ' ');
    const auto bytes = [&](std::size_t at, std::size_t size) {
      return std::as_writable_bytes(std::span(into)).subspan(at, size);
    };
    session.read_many(std::vector<ps::read_request>{{0, 0, bytes(0, 2000), 0}}, nobody);
    far.reads->end(0);  // how long one takes
    CHECK(session.report().counters.held == 0);
    for (std::uint64_t round = 1; round < 4; ++round) {
      std::fill(into.begin(), into.end(), ' ');
      read_outcomes outcomes(3);
      session.read_many(
          std::vector<ps::read_request>{
              {0, 1, bytes(0, 2000), 0}, {0, 2001, bytes(2000, 2000), 1}, {0, 4001, bytes(4000, 600), 2}},
          outcomes.listener());
      // the second one finds no room for a buffer
      if (abandons) {
        eventually([&] { return session.report().counters.hedges == 2 * round; });
        // A second read is counted before it begins.
        eventually([&] { return far.reads->offsets().size() == 5; });
        CHECK(far.reads->offsets() == std::vector<std::uint64_t>{1, 2001, 4001, 1, 4001});
      }
      CHECK(session.report().counters.held == 2600);
      far.reads->end_all();
      CHECK(outcomes.failures() == 0);
      CHECK(outcomes.each_once());
      CHECK((into.substr(0, 4600) == content(10'000).substr(1, 4600)));
      CHECK(session.report().counters.held == 0);
    }
  };
  run(abandoning_storage(one_file()), true);
  run(held_storage(one_file()), false);
}

TEST_CASE("storage/hedged: a run whose reads stall delivers the bytes of an undisturbed one") {
  const deadline limit("runs over storages that stall");
  const auto shards = penstock_test::disturbed_shards();
  const disturbed_run right(shards, 0);
  const ps::hedged_options soon{.max_extra_requests = 0.5, .observations = 4, .min_delay = 0us};
  const ps::retrying_options retries{.initial_backoff = 1ms, .budget = 0};
  for (const unsigned threads : {0u, 1u, 2u}) {
    const far_memory far(
        shards, {.latency = 50us, .jitter = 100us, .failing = 0.1, .stall_one_in = 60, .stall = 20ms});
    for (const auto& seen :
         {disturbed_run(ps::retrying(ps::throttled(ps::hedged(far, soon)), retries), threads),
          disturbed_run(ps::hedged(ps::retrying(ps::throttled(far), retries), soon), threads),
          disturbed_run(ps::retrying(ps::hedged(ps::throttled(far), soon), retries), threads)}) {
      CHECK((seen.bytes == right.bytes));  // as texts they would fill pages
      CHECK(seen.counters.requests > 0);
      CHECK(seen.counters.retries > 0);
    }
  }
}

TEST_CASE("storage/hedged: options out of range are refused") {
  const auto refuses = [](ps::hedged_options options, const char* why) {
    CHECK_THROWS_WITH(ps::hedged(far_memory(one_file()), options), contains(why));
  };
  refuses({.max_extra_requests = -0.1}, "from 0 to 1");
  refuses({.max_extra_requests = std::numeric_limits<double>::quiet_NaN()}, "from 0 to 1");
  refuses({.observations = 0}, "at least one read");
  refuses({.min_delay = -1us}, "not -1 us");
}
