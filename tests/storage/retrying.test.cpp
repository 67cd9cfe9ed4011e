// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/retrying.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"
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
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::contains;
using penstock_test::deadline;
using penstock_test::disturbed_run;
using penstock_test::eventually;
using penstock_test::read_outcomes;

using far_memory = ps::simulated_storage<ps::memory_files>;
using retrying_far = ps::retrying<far_memory>;
using retrying_files = ps::retrying<ps::file>;
using retrying_memory = ps::retrying<ps::memory_files>;
static_assert(ps::storage<retrying_far> && ps::background_session<retrying_far::session>);
static_assert(ps::session_traits_of<retrying_far::session>().latency);
static_assert(!ps::is_local<retrying_far>() && ps::is_local<retrying_files>());
static_assert(!ps::background_session<retrying_files::session> &&
              !ps::session_traits_of<retrying_files::session>().latency);
static_assert(!ps::abandons<retrying_far::session>(), "its reads have other tags inside");
static_assert(ps::mapped_session<retrying_files::session>);
static_assert(ps::all_mapped<retrying_memory::session>());
static_assert(!std::is_copy_constructible_v<retrying_far::session>, "only one session may end its reads");

namespace {

std::string far_content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
ps::memory_files two_files() { return ps::memory_files().add("a", far_content(100'000)).add("b", "short"); }
ps::simulated_fault first_reads_fail(std::uint32_t times, ps::simulated_failure how = {}) {
  return {.object = 0, .times = times, .how = how};
}
constexpr ps::retrying_options no_wait{.initial_backoff = 0ms};

/// The error of a read of four bytes at offset 10 of the first object.
template <class Session>
std::string failure_of(const Session& session, ps::errc code = ps::errc::io) {
  std::array<std::byte, 4> four{};
  try {
    session.read(0, 10, four);
  } catch (const ps::error& e) {
    CHECK(e.code() == code);
    CHECK(e.file() == "a");
    CHECK(e.offset() == 10);
    return std::string(e.message());
  }
  return "none";
}

/// Files whose reads throw what is no error of this library.
struct foreign_storage : ps::memory_files {
  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {};  // shows nothing in place
    std::atomic<int>* reads;
    session(ps::memory_files::session good, std::atomic<int>* count)
        : ps::memory_files::session(std::move(good)), reads(count) {}
    void read(ps::object_id, std::uint64_t, ps::mutable_bytes) const {
      ++*reads;
      throw std::runtime_error("foreign");
    }
  };
  foreign_storage(const ps::memory_files& files, std::atomic<int>* count)
      : ps::memory_files(files), reads(count) {}
  [[nodiscard]] session connect() const { return session(ps::memory_files::connect(), reads); }
  std::atomic<int>* reads;
};

/// Files in memory that cannot be read while `*broken`.
struct breaking_storage : ps::memory_files {
  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {};  // shows nothing in place
    const std::atomic<bool>* broken;
    session(ps::memory_files::session good, const std::atomic<bool>* flag)
        : ps::memory_files::session(std::move(good)), broken(flag) {}
    void read(ps::object_id id, std::uint64_t offset, ps::mutable_bytes into) const {
      if (*broken) throw ps::error(ps::errc::io, "broken");
      ps::memory_files::session::read(id, offset, into);
    }
  };
  breaking_storage(const ps::memory_files& files, const std::atomic<bool>* flag)
      : ps::memory_files(files), broken(flag) {}
  [[nodiscard]] session connect() const { return session(ps::memory_files::connect(), broken); }
  const std::atomic<bool>* broken;
};

}  // namespace

TEST_CASE("storage/retrying: a read that fails twice succeeds at the third attempt") {
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(2)}});
  const ps::retrying retried(far, no_wait);
  const auto session = retried.connect();
  std::array<std::byte, 4> four{};
  session.read(0, 10, four);
  CHECK(ps::text_of(four) == far_content(14).substr(10));
  CHECK(session.size(1) == 5);
  CHECK(session.version(1).size == 5);
  CHECK(session.report().counters == ps::storage_counters{.requests = 3, .bytes = 4, .retries = 2});
  CHECK(retried.describe() == "retrying(" + far.describe() + ", 10 attempts)");
  CHECK(retried.names().size() == 2);
}

TEST_CASE("storage/retrying: the last error is thrown, with the number of attempts") {
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  const ps::retrying retried(far, {.attempts = 3, .initial_backoff = 1ms});
  auto session = retried.connect();
  CHECK(failure_of(session) == "this read fails, as simulated, after 3 attempts");
  CHECK(far.reads() == 3);
  std::array<std::byte, 4> four{};
  read_outcomes outcomes(1);
  session.read_many(std::vector<ps::read_request>{{0, 10, four, 0}}, outcomes.listener());
  outcomes.wait();
  REQUIRE(outcomes.error_of(0));
  CHECK(outcomes.error_of(0)->message() == "this read fails, as simulated, after 3 attempts");
  CHECK(outcomes.error_of(0)->offset() == 10);
  CHECK_FALSE(outcomes.error_of(0)->recurs());
  CHECK(session.report().counters == ps::storage_counters{.requests = 6, .retries = 4, .given_up = 2});
  CHECK(failure_of(ps::retrying(far, {.attempts = 1}).connect()) == "this read fails, as simulated");
}

TEST_CASE("storage/retrying: what recurs is not tried again") {
  const far_memory far(two_files(),
                       {.latency = 0ms, .faults = {first_reads_fail(~0u, ps::simulated_failure::missing)}});
  const ps::retrying retried(far, no_wait);
  auto session = retried.connect();
  CHECK(failure_of(session) == "there is no such object, as simulated");
  CHECK(far.reads() == 1);
  std::array<std::byte, 9> nine{};
  CHECK_THROWS_WITH(session.read(1, 0, nine), !contains("attempts"));  // beyond the end
  CHECK(far.reads() == 2);
  CHECK_THROWS_AS(session.size(7), ps::error);
  CHECK(session.report().counters.retries == 0);
  CHECK(session.report().counters.given_up == 0);

  std::atomic<int> reads{0};
  const ps::retrying foreign(foreign_storage(two_files(), &reads), no_wait);
  CHECK_THROWS_WITH(foreign.connect().read(0, 0, nine), "foreign");
  CHECK(reads == 1);
}

TEST_CASE("storage/retrying: a budget bounds the retries of all reads") {
  const far_memory dead(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  const auto session = ps::retrying(dead, {.attempts = 1000, .initial_backoff = 0ms, .budget = 12}).connect();
  CHECK(failure_of(session) ==
        "this read fails, as simulated, after 3 attempts; so many reads failed that the budget for retries "
        "is spent");
  CHECK(failure_of(session) ==
        "this read fails, as simulated, after 1 attempt; so many reads failed that the budget for retries is "
        "spent");
  CHECK(session.report().counters == ps::storage_counters{.requests = 4, .retries = 2, .given_up = 2});

  const far_memory slow(
      two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u, ps::simulated_failure::timed_out)}});
  const auto waits = ps::retrying(slow, {.attempts = 1000, .initial_backoff = 0ms, .budget = 29}).connect();
  CHECK_THAT(failure_of(waits), contains("after 3 attempts; so many"));

  // a retry that succeeds gives back what it took, so that a store that fails now and then is always asked
  // again
  const far_memory flaky(two_files(), {.latency = 0ms, .failing = 1});
  const auto lasts = ps::retrying(flaky, {.initial_backoff = 0ms, .budget = 5}).connect();
  std::array<std::byte, 1> one{};
  for (std::uint64_t i = 0; i < 100; ++i) lasts.read(0, i, one);
  CHECK(lasts.report().counters == ps::storage_counters{.requests = 200, .bytes = 100, .retries = 100});
  const ps::store_requests requests = lasts.report().requests;  // of the storage inside
  CHECK(requests.answered == 100);
  CHECK(requests.failed == 100);
  CHECK(requests.durations.count() == 200);

  const auto endless = ps::retrying(dead, {.attempts = 1000, .initial_backoff = 0ms, .budget = 0}).connect();
  CHECK_THAT(failure_of(endless), contains("after 1000 attempts"));
}

TEST_CASE("storage/retrying: waits are drawn by seed, object, offset and attempt") {
  ps::detail::retry_policy rules{.initial_backoff = 100ms, .max_backoff = 1000ms};
  const auto wait = [&](ps::object_id object, std::uint64_t offset, std::uint32_t attempt) {
    return ps::detail::retry_wait(rules, {object, offset, {}}, attempt);
  };
  std::vector<std::chrono::nanoseconds> seen;
  for (std::uint32_t attempt = 1; attempt <= 8; ++attempt) {
    const auto maximum = std::min<std::chrono::nanoseconds>(100ms * (1 << (attempt - 1)), 1000ms);
    auto least_seen = maximum, max_seen = maximum - maximum;
    for (std::uint64_t offset = 0; offset < 200; ++offset) {
      const auto one = wait(0, offset, attempt);
      CHECK(one == wait(0, offset, attempt));
      least_seen = std::min(least_seen, one);
      max_seen = std::max(max_seen, one);
    }
    CHECK(least_seen < maximum / 10);
    CHECK(max_seen < maximum);
    CHECK(max_seen > maximum / 10 * 9);
  }
  CHECK(wait(0, 1, 1) != wait(1, 1, 1));
  CHECK(wait(0, 1, 1) != wait(0, 2, 1));
  const auto before = wait(0, 1, 1);
  rules.seed = 1;
  CHECK(wait(0, 1, 1) != before);
  rules.initial_backoff = 0ms;
  CHECK(wait(0, 1, 9) == 0ms);
}

TEST_CASE("storage/retrying: reads in the background are tried again, and report once") {
  const deadline limit("two thousand reads of which half fail at first");
  const std::string all = far_content(100'000);
  const far_memory far(two_files(),
                       {.latency = 100us, .jitter = 1ms, .seed = 3, .failing = 0.5, .failing_times = 2});
  auto session = ps::retrying(far, {.initial_backoff = 1ms, .budget = 0}).connect();
  std::vector<std::byte> bytes(2000 * 20);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 2000; ++i) requests.push_back({0, i * 40, {bytes.data() + i * 20, 20}, i});
  read_outcomes outcomes(2000);
  session.read_many(std::span(requests).first(1500), outcomes.listener());
  session.read_many(std::span(requests).subspan(1500), outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  bool right = true;
  for (const auto& one : requests) right = right && ps::text_of(one.into) == all.substr(one.offset, 20);
  CHECK(right);
  const ps::storage_counters counted = session.report().counters;
  CHECK(counted.retries > 1500);
  CHECK(counted.retries % 2 == 0);
  CHECK(counted.requests == 2000 + counted.retries);
  CHECK(counted.bytes == 40'000);
  CHECK(far.reads() == counted.requests);
}

TEST_CASE("storage/retrying: in the steady state nothing is allocated") {
  const deadline limit("reads of a session in use");
  const auto files = two_files();
  const penstock_test::held_storage far(files);
  auto session = ps::retrying(far).connect();
  std::array<std::byte, 8> bytes{};
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 8; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  const ps::read_listener nobody{nullptr, [](void*, std::uint64_t, std::exception_ptr) noexcept {}};
  std::uint64_t allocations = 0;
  for (int round = 0; round < 3; ++round) {
    // the reads held by the test allocate; what happens between belongs to the session
    far.reads->reserve(64);
    allocations = penstock_test::allocations_of([&] { session.read_many(requests, nobody); });
    far.reads->end_all();
  }
  CHECK(allocations == 0);
  CHECK(penstock_test::allocations_of([&] { session.read(0, 0, bytes); }) == 0);
}

TEST_CASE("storage/retrying: cancel ends a thousand reads that wait, and the session can be used again") {
  const deadline limit("cancelling a thousand waits");
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  auto session =
      ps::retrying(far, {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h, .budget = 0}).connect();
  session.cancel();  // nothing to do
  std::vector<std::byte> bytes(1000);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 1000; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  read_outcomes outcomes(1000);
  session.read_many(requests, outcomes.listener());
  std::exception_ptr seen;
  std::thread reader([&] {
    std::array<std::byte, 1> one{};
    try {
      session.read(0, 0, one);
    } catch (...) {
      seen = std::current_exception();
    }
  });
  eventually([&] { return session.report().counters.retries == 1001; });
  CHECK(outcomes.ended() == 0);
  session.cancel();
  outcomes.wait();
  reader.join();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 1000);
  CHECK(outcomes.error_of(7)->file() == "a");
  CHECK(outcomes.error_of(7)->offset() == 7);
  CHECK(far.reads() == 1001);
  REQUIRE(seen);
  CHECK_THROWS_WITH(std::rethrow_exception(seen), contains("cancelled"));
  read_outcomes second(1);
  session.read_many(std::vector<ps::read_request>{{1, 0, {bytes.data(), 5}, 0}}, second.listener());
  second.wait();
  CHECK(second.failures() == 0);
  session.read(1, 0, {bytes.data(), 5});
}

TEST_CASE("storage/retrying: a stop token ends the waits of all sessions, and those of making a plan") {
  const deadline limit("stop tokens of storages of one's own");
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  std::stop_source stop;
  const ps::retrying retried(far, {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h, .budget = 0},
                             stop.get_token());
  const auto ended_by_stop = [](auto&& f) {
    try {
      f();
    } catch (const ps::error& e) {
      return e.code() == ps::errc::stopped;
    }
    return false;
  };
  auto session = retried.connect();
  std::vector<std::byte> bytes(10);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 10; ++i) requests.push_back({0, i, {&bytes[i], 1}, i});
  read_outcomes outcomes(10);
  session.read_many(requests, outcomes.listener());
  std::atomic<bool> plan_stopped{false};
  std::thread makes_plan([&] { plan_stopped = ended_by_stop([&] { (void)ps::webdataset(retried); }); });
  eventually([&] { return far.reads() > 10 && session.report().counters.retries == 10; });
  stop.request_stop();
  makes_plan.join();
  outcomes.wait();
  CHECK(plan_stopped);
  CHECK(outcomes.failures(ps::errc::stopped) == 10);
  CHECK(ended_by_stop([&] { retried.connect().read(0, 0, bytes); }));
  const auto asked = far.reads();
  read_outcomes late(10);
  session.read_many(requests, late.listener());
  late.wait();
  CHECK(late.failures(ps::errc::stopped) == 10);
  CHECK(far.reads() == asked);
}

namespace {
/// One object, each of whose reads asks for a stop and then fails in a way that may pass.
struct stopping_storage {
  struct session {
    std::stop_source stop;
    std::uint64_t size(ps::object_id) const { return 10; }
    ps::object_version version(ps::object_id) const { return {10, 1}; }
    void read(ps::object_id, std::uint64_t, ps::mutable_bytes) {
      stop.request_stop();
      throw ps::error(ps::errc::io, "the connection was lost");
    }
  };
  std::stop_source stop;
  std::vector<std::string> all = {"a"};
  std::span<const std::string> names() const { return all; }
  session connect() const { return {stop}; }
};
}  // namespace

TEST_CASE("storage/retrying: a read that fails while it is stopped ends as stopped") {
  const deadline limit("a stop during an attempt");
  const stopping_storage far;
  std::vector<std::byte> bytes(10);
  try {
    ps::retrying(far, {.initial_backoff = 24h, .max_time = 24h}, far.stop.get_token())
        .connect()
        .read(0, 0, bytes);
    FAIL("the read did not fail");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::stopped);
  }
}

TEST_CASE("storage/retrying: a session that ends reports each of its reads") {
  const deadline limit("ending a session with reads that wait and reads in flight");
  std::vector<std::byte> bytes(600);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 600; ++i)
    requests.push_back({static_cast<ps::object_id>(i % 2), i % 2 == 0 ? i : 0, {&bytes[i], 1}, i});
  read_outcomes outcomes(600);
  const far_memory far(two_files(),
                       {.latency = 1ms, .faults = {first_reads_fail(~0u)}, .stall_one_in = 2, .stall = 1h});
  {
    auto session = ps::retrying(far, {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h}).connect();
    session.read_many(requests, outcomes.listener());
    eventually([&] { return session.report().counters.retries > 50; });
  }
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) > 200);
  CHECK(far.in_flight() == 0);
}

TEST_CASE("storage/retrying: threads that read, cancel and retry at once") {
  const deadline limit("threads that read and cancel");
  const std::string all = far_content(100'000);
  const far_memory far(two_files(), {.latency = 0ms, .jitter = 500us, .failing = 0.5});
  auto session = ps::retrying(far, {.initial_backoff = 1ms, .budget = 0}).connect();
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
          if (e.code() == ps::errc::format) wrong = true;
        }
      }
    });
  }
  for (std::uint64_t round = 0; round < 30; ++round) {
    std::vector<std::byte> bytes(100 * 20);
    std::vector<ps::read_request> requests;
    for (std::size_t i = 0; i < 100; ++i)
      requests.push_back({0, 5000 + round * 2000 + i * 20, {bytes.data() + i * 20, 20}, i});
    read_outcomes outcomes(100);
    session.read_many(requests, outcomes.listener());
    if (round % 3 == 1) std::this_thread::sleep_for(300us);
    if (round % 3 != 0) session.cancel();
    outcomes.wait();
    CHECK(outcomes.each_once());
    for (std::size_t i = 0; i < 100; ++i)
      if (!outcomes.failed(i) && ps::text_of(requests[i].into) != all.substr(requests[i].offset, 20))
        wrong = true;
    if (round % 3 == 0) CHECK(outcomes.failures() == 0);
  }
  for (std::thread& reader : readers) reader.join();
  CHECK_FALSE(wrong);
}

TEST_CASE("storage/retrying: once its reads are ended, a session tries nothing again") {
  const deadline limit("reads after the end");
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  auto session =
      ps::retrying(ps::throttled(far), {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h})
          .connect();
  ps::end_reads(session);
  CHECK(failure_of(session) == "this read fails, as simulated");
  CHECK(session.report().counters.retries == 0);
}

TEST_CASE("storage/retrying: it tells of its oldest read, and which attempt that is") {
  const deadline limit("the oldest read");
  const far_memory far(two_files(), {.latency = 0ms, .faults = {first_reads_fail(~0u)}});
  auto session =
      ps::throttled(ps::retrying(far, {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h}))
          .connect();
  CHECK_FALSE(session.report().oldest.has_value());
  CHECK(session.report().names[1] == "b");
  const auto told = [&](std::uint64_t offset) {
    eventually([&] {
      const auto late = session.report().oldest;
      return late && late->attempt == 2;
    });
    const auto late = session.report().oldest;
    REQUIRE(late.has_value());
    CHECK(late->object == 0);
    CHECK(late->offset == offset);
    CHECK(late->age_ns > 0);
  };
  std::array<std::byte, 8> bytes{};
  SECTION("in the background") {
    const std::array<ps::read_request, 1> requests{{{0, 50, bytes, 0}}};
    read_outcomes outcomes(1);
    session.read_many(requests, outcomes.listener());
    told(50);
    session.cancel();
    outcomes.wait();
  }
  SECTION("in a thread that waits") {
    std::thread reader([&] {
      try {
        session.read(0, 60, bytes);
      } catch (const ps::error&) {  // stopped
      }
    });
    told(60);
    session.cancel();
    reader.join();
  }
  CHECK_FALSE(session.report().oldest.has_value());
}

TEST_CASE("storage/retrying: views are the views of the storage inside") {
  const auto files = two_files();
  const auto session = ps::retrying(files).connect();
  CHECK(session.view(1, 1, 3).data() == files.connect().view(1, 1, 3).data());
  std::array<std::byte, 5> five{};
  session.read(1, 0, five);
  CHECK(ps::text_of(five) == "short");
  CHECK(session.report().counters == ps::storage_counters{.requests = 1, .bytes = 5});
  CHECK(session.report().requests.answered == 1);
  CHECK(session.report().requests.durations.count() == 1);
  session.will_need(0, 0, 10);
}

TEST_CASE("storage/retrying: a run over a storage that fails delivers the bytes of an undisturbed one") {
  const deadline limit("runs over failing storages");
  const auto shards = penstock_test::disturbed_shards();
  const disturbed_run right(shards, 0);
  REQUIRE(right.bytes.size() > 2 * 300 * 100);
  CHECK(right.counters == ps::storage_counters{});  // files in memory count nothing
  for (const unsigned threads : {0u, 1u, 2u}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const far_memory far(
          shards, {.latency = 50us, .jitter = 200us, .seed = seed, .failing = 0.2, .failing_times = 3});
      const disturbed_run seen(ps::retrying(far, {.initial_backoff = 1ms, .budget = 0}), threads);
      CHECK((seen.bytes == right.bytes));  // as texts they would fill pages
      CHECK(seen.counters.retries > 0);
      CHECK(seen.counters.given_up == 0);
      const disturbed_run both(
          ps::retrying(
              ps::throttled(far_memory(shards, {.latency = 50us, .failing = 0.1, .slow_down_above = 4}),
                            {.max_in_flight = 16}),
              {.attempts = 50, .initial_backoff = 1ms, .max_backoff = 2ms, .budget = 0, .seed = seed}),
          threads);
      CHECK((both.bytes == right.bytes));  // as texts they would fill pages
    }
  }
}

TEST_CASE("storage/retrying: a run that is destroyed does not wait for retries") {
  const deadline limit("destroying a run whose reads wait", 60s);
  std::atomic<bool> broken{false};
  const breaking_storage shards(penstock_test::disturbed_shards(), &broken);
  const ps::retrying hopeless(ps::simulated_storage(shards, {.latency = 50us}),
                              {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h, .budget = 0});
  for (const unsigned threads : {1u, 2u}) {
    broken = false;
    const ps::webdataset samples(hopeless);  // reads the headers
    broken = true;
    auto run =
        (samples | ps::fields<"txt"> | ps::batch(8, ps::ragged) | ps::prefetch(32) | ps::workers(threads))
            .open();
    eventually([&] { return run.counters().storage.retries > 0; });
  }
}

TEST_CASE(
    "storage/retrying: over a storage that reads in the calling thread, too, a run is stopped at once") {
  const penstock_test::deadline limit("stopping");
  std::atomic<bool> broken{false};
  const breaking_storage shards(penstock_test::disturbed_shards(), &broken);
  const ps::webdataset samples(
      ps::retrying(shards, {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h, .budget = 0}));
  broken = true;
  for (const unsigned workers : {0u, 2u}) {
    auto run = (samples | ps::fields<"txt"> | ps::batch(8, ps::ragged) | ps::workers(workers)).open();
    const std::jthread stops([&] {
      while (run.counters().storage.retries == 0) std::this_thread::sleep_for(1ms);
      run.request_stop();
    });
    CHECK_FALSE(bool(run.next()));
  }
}

TEST_CASE("storage/retrying: a missing file is not waited for, and what is local stays so") {
  const auto missing =
      ps::retrying(ps::file("/none/a.tar"), {.initial_backoff = 24h, .max_backoff = 24h, .max_time = 24h});
  CHECK(ps::is_local(missing));
  CHECK_THROWS_WITH(missing.connect().size(0), penstock_test::contains("No such file"));
}

TEST_CASE("storage/retrying: options out of range are refused") {
  const auto refuses = [](ps::retrying_options options, const char* why) {
    CHECK_THROWS_WITH(ps::retrying(ps::memory_files(), options), contains(why));
  };
  refuses({.attempts = 0}, "at least one attempt");
  refuses({.initial_backoff = -1ms}, "not -1 ms");
  refuses({.max_backoff = 25h}, "from 0 ms to a day");
  refuses({.max_retry_after = -5ms}, "not -5 ms");
}
