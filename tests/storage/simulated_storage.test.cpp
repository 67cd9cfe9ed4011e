// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/simulated_storage.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_files.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/read_outcomes.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::deadline;
using penstock_test::read_outcomes;

using far_memory = ps::simulated_storage<ps::memory_files>;
static_assert(ps::storage<far_memory> && ps::background_session<far_memory::session>);
static_assert(ps::session_traits_of<far_memory::session>().latency &&
              !ps::session_traits_of<ps::file::session>().latency);
static_assert(!ps::background_session<ps::file::session>, "file reads in the calling thread");
static_assert(ps::is_local<ps::simulated_storage<ps::file>>() && !ps::is_local<far_memory>());
static_assert(!std::is_copy_constructible_v<far_memory::session>, "only one session may end its reads");

namespace {

std::string content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + (i >> 8));
  return text;
}
ps::memory_files two_files() { return ps::memory_files().add("a", content(100'000)).add("b", "short"); }

/// A number of ranges spread over the first object, with their destinations.
struct many_ranges {
  many_ranges(std::size_t count, std::size_t size) : bytes(count * size), each(size) {
    for (std::size_t i = 0; i < count; ++i)
      requests.push_back({0, i * 7919 % (100'000 - size), {bytes.data() + i * size, size}, i});
  }
  [[nodiscard]] bool right(std::size_t i, const std::string& of) const {
    const auto wanted = ps::bytes_of(of).subspan(requests[i].offset, each);
    return std::equal(wanted.begin(), wanted.end(), requests[i].into.begin());
  }
  std::vector<std::byte> bytes;
  std::vector<ps::read_request> requests;
  std::size_t each;
};

}  // namespace

TEST_CASE("storage/simulated_storage: a read takes the time given and returns the bytes") {
  const ps::simulated_storage far(two_files(), {.latency = 3ms});
  const auto session = far.connect();
  CHECK(far.names().size() == 2);
  CHECK(far.describe() == "simulated_storage(memory_files(2 objects), 3000 us a read)");
  CHECK(session.size(1) == 5);
  CHECK(session.version(1).size == 5);
  CHECK(far.reads() == 0);
  std::array<std::byte, 5> five{};
  const auto begin = std::chrono::steady_clock::now();
  session.read(1, 0, five);
  CHECK(std::chrono::steady_clock::now() - begin >= 3ms);
  CHECK(ps::text_of(five) == "short");
  CHECK(far.reads() == 1);
  CHECK(far.bytes() == 5);
  CHECK(far.peak_in_flight() == 1);
  CHECK(far.in_flight() == 0);
}

TEST_CASE("storage/simulated_storage: reads in the background wait together") {
  const deadline limit("two thousand reads at once");
  const std::string all = content(100'000);
  const ps::simulated_storage far(two_files(), {.latency = 50ms, .jitter = 1ms});
  auto session = far.connect();
  many_ranges ranges(2000, 100);
  read_outcomes outcomes(2000);
  session.read_many(ranges.requests, outcomes.listener());
  CHECK(far.in_flight() + outcomes.ended() >= 1);
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  bool right = true;
  for (std::size_t i = 0; i < 2000; ++i) right = right && ranges.right(i, all);
  CHECK(right);
  CHECK(far.reads() == 2000);
  CHECK(far.bytes() == 200'000);
  CHECK(far.peak_in_flight() > 1);
  CHECK(far.in_flight() == 0);
}

TEST_CASE("storage/simulated_storage: jitter is drawn by seed, object and offset") {
  const auto order_of = [](std::uint64_t seed) {
    const ps::simulated_storage far(two_files(), {.latency = 1ms, .jitter = 20ms, .seed = seed});
    auto session = far.connect();
    many_ranges ranges(50, 10);
    read_outcomes outcomes(50);
    session.read_many(ranges.requests, outcomes.listener());
    outcomes.wait();
    return outcomes.order();
  };
  const auto first = order_of(1);
  CHECK(first == order_of(1));
  CHECK(first != order_of(2));
  CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST_CASE("storage/simulated_storage: places and a link make reads wait for each other") {
  const auto time_of = [](ps::simulated_storage_options options) {
    const ps::simulated_storage far(two_files(), options);
    auto session = far.connect();
    many_ranges ranges(8, 1000);
    read_outcomes outcomes(8);
    const auto begin = std::chrono::steady_clock::now();
    session.read_many(ranges.requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.order() == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7});
    return std::chrono::steady_clock::now() - begin;
  };
  CHECK(time_of({.latency = 5ms, .max_in_flight = 2}) >= 20ms);
  CHECK(time_of({.latency = 0ms, .bytes_per_second = 1e6}) >= 8ms);
  const ps::simulated_storage slow_sizes(two_files(), {.size_latency = 4ms});
  const auto session = slow_sizes.connect();
  const auto begin = std::chrono::steady_clock::now();
  CHECK(session.size(1) == 5);
  CHECK(std::chrono::steady_clock::now() - begin >= 4ms);
}

TEST_CASE("storage/simulated_storage: errors of background reads are those that read throws") {
  const ps::simulated_storage far(two_files(), {.latency = 1ms});
  auto session = far.connect();
  std::array<std::byte, 8> eight{};
  const std::vector<ps::read_request> requests{{1, 2, eight, 0}, {7, 0, eight, 1}, {0, 100'000, {}, 2}};
  read_outcomes outcomes(3);
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  for (const std::uint64_t tag : {0u, 1u}) {
    const auto told = outcomes.error_of(tag);
    REQUIRE(told);
    CHECK_THROWS_WITH(session.read(requests[tag].object, requests[tag].offset, eight),
                      std::string(told->what()));
  }
  CHECK(outcomes.error_of(0)->offset() == 2);
  CHECK(outcomes.error_of(0)->file() == "b");
  CHECK_FALSE(outcomes.failed(2));
}

TEST_CASE("storage/simulated_storage: reads fail where and as often as configured") {
  const ps::simulated_storage far(two_files(), {.latency = 0ms,
                                                .faults = {{.object = 0, .begin = 500, .end = 600},
                                                           {.object = 1, .begin = 2, .end = 3, .times = 2}}});
  auto session = far.connect();
  std::array<std::byte, 100> bytes{};
  const auto fails = [&](ps::object_id id, std::uint64_t offset, std::size_t size) {
    try {
      session.read(id, offset, ps::mutable_bytes(bytes).first(size));
    } catch (const ps::error& e) {
      return e.code() == ps::errc::io && e.offset() == offset && e.file() == (id == 0 ? "a" : "b");
    }
    return false;
  };
  CHECK_FALSE(fails(0, 400, 100));
  CHECK(fails(0, 401, 100));
  CHECK(fails(0, 599, 1));
  CHECK_FALSE(fails(0, 600, 100));
  CHECK_FALSE(fails(1, 3, 2));
  CHECK(fails(1, 0, 5));
  read_outcomes outcomes(1);
  session.read_many(std::vector<ps::read_request>{{1, 2, ps::mutable_bytes(bytes).first(1), 0}},
                    outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures(ps::errc::io) == 1);
  CHECK_FALSE(fails(1, 0, 5));  // twice was enough, for all sessions
  CHECK(far.reads() == 8);
}

TEST_CASE(
    "storage/simulated_storage: a fault can be a time-out, a request to slow down, or a missing object") {
  using how = ps::simulated_failure;
  std::array<std::byte, 1> one{};
  for (const how kind : {how::broken, how::timed_out, how::slow_down, how::missing}) {
    const ps::simulated_storage far(
        two_files(), {.latency = 0ms, .faults = {{.object = 0, .how = kind}}, .asks_to_wait = 7ms});
    const auto session = far.connect();
    try {
      session.read(0, 3, one);
      CHECK(false);
    } catch (const ps::error& e) {
      CHECK(e.code() == ps::errc::io);
      CHECK(e.file() == "a");
      CHECK(e.offset() == 3);
      CHECK(e.recurs() == (kind == how::missing));
      CHECK(e.timed_out() == (kind == how::timed_out));
      CHECK(e.retry_after_ms().has_value() == (kind == how::slow_down));
      CHECK(e.retry_after_ms().value_or(7) == 7);
    }
    CHECK(session.report().counters ==
          ps::storage_counters{.requests = 1, .slow_downs = kind == how::slow_down ? 1u : 0u});
  }
}

TEST_CASE("storage/simulated_storage: some ranges fail the first times, drawn by seed, object and offset") {
  const auto failing = [](std::uint64_t seed) {
    const ps::simulated_storage far(two_files(),
                                    {.latency = 0ms, .seed = seed, .failing = 0.25, .failing_times = 2});
    const auto session = far.connect();
    std::vector<int> failures;
    for (std::uint64_t offset = 0; offset < 400; ++offset) {
      int failed = 0;
      for (int i = 0; i < 4; ++i) {
        std::array<std::byte, 1> one{};
        try {
          session.read(0, offset, one);
        } catch (const ps::error& e) {
          CHECK_FALSE(e.recurs());
          CHECK(failed++ == i);
        }
      }
      CHECK((failed == 0 || failed == 2));
      failures.push_back(failed);
    }
    return failures;
  };
  const auto first = failing(1);
  CHECK(first == failing(1));
  CHECK(first != failing(2));
  const auto share = std::count(first.begin(), first.end(), 2);
  CHECK(share > 60);
  CHECK(share < 140);
}

TEST_CASE("storage/simulated_storage: one read in so many stalls, and others pass it") {
  const ps::simulated_storage far(two_files(), {.latency = 0ms, .seed = 1, .stall_one_in = 5, .stall = 30ms});
  auto session = far.connect();
  many_ranges ranges(200, 10);
  const auto stalled = [&] {
    read_outcomes outcomes(200);
    session.read_many(ranges.requests, outcomes.listener());
    outcomes.wait();
    CHECK(outcomes.failures() == 0);
    const auto order = outcomes.order();
    const auto turn = std::is_sorted_until(order.begin(), order.end());
    CHECK(std::is_sorted(turn, order.end()));
    return std::vector<std::uint64_t>(turn, order.end());
  };
  const auto first = stalled();
  CHECK(first.size() > 20);
  CHECK(first.size() < 80);
  CHECK(stalled() != first);  // each time a range is read is drawn anew
}

TEST_CASE("storage/simulated_storage: reads that find too many others in flight are refused") {
  const ps::simulated_storage far(two_files(), {.latency = 20ms, .slow_down_above = 3, .asks_to_wait = 2ms});
  auto session = far.connect();
  many_ranges ranges(10, 10);
  read_outcomes outcomes(10);
  session.read_many(ranges.requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures() == 7);
  CHECK_FALSE(outcomes.failed(2));
  REQUIRE(outcomes.error_of(3));
  CHECK(outcomes.error_of(3)->retry_after_ms() == 2);
  CHECK(session.report().counters == ps::storage_counters{.requests = 10, .bytes = 30, .slow_downs = 7});
}

TEST_CASE("storage/simulated_storage: cancel ends pending reads, and the session can be used again") {
  const deadline limit("cancelling a thousand reads");
  const ps::simulated_storage far(
      two_files(), {.latency = 0ms, .max_in_flight = 1, .bytes_per_second = 100});  // a second for each read
  auto session = far.connect();
  session.cancel();  // nothing to do
  many_ranges ranges(1000, 100);
  read_outcomes first(1000), second(1);
  session.read_many(ranges.requests, first.listener());
  CHECK(far.in_flight() > 900);
  std::thread reader([&] {  // waits for all of them, but not after the cancel
    std::array<std::byte, 1> one{};
    session.read(1, 0, one);
  });
  session.cancel();
  first.wait();
  reader.join();
  CHECK(first.each_once());
  CHECK(first.failures(ps::errc::stopped) == 1000);
  CHECK(first.error_of(3)->offset() == ranges.requests[3].offset);
  CHECK(first.error_of(3)->file() == "a");
  session.read_many(std::vector<ps::read_request>{{0, 0, {}, 0}}, second.listener());
  second.wait();
  CHECK(second.failures() == 0);
}

TEST_CASE("storage/simulated_storage: one read can be abandoned") {
  const deadline limit("a read that is abandoned");
  const ps::simulated_storage far(two_files(), {.latency = 1h});
  static_assert(ps::abandons<far_memory::session>() && !ps::abandons<ps::file::session>());
  many_ranges ranges(3, 10);
  read_outcomes outcomes(3);
  auto session = far.connect();
  session.read_many(ranges.requests, outcomes.listener());
  session.abandon(1);
  outcomes.wait(1);
  CHECK(outcomes.order() == std::vector<std::uint64_t>{1});
  CHECK(outcomes.failures(ps::errc::stopped) == 1);
  session.abandon(7);  // there is none
  CHECK(far.in_flight() == 2);
}

TEST_CASE("storage/simulated_storage: a session that ends completes each of its reads") {
  const deadline limit("ending a session with a thousand reads in flight");
  const ps::simulated_storage far(two_files(), {.latency = 1h});
  many_ranges ranges(1000, 100);
  read_outcomes outcomes(1000);
  {
    auto session = far.connect();
    session.read_many(ranges.requests, outcomes.listener());
  }
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures(ps::errc::stopped) == 1000);
  CHECK(far.reads() == 0);
  CHECK(far.in_flight() == 0);
  CHECK(far.peak_in_flight() == 1000);
}

TEST_CASE("storage/simulated_storage: threads that read and cancel at once") {
  const deadline limit("threads that read and cancel");
  const std::string all = content(100'000);
  const ps::simulated_storage far(two_files(), {.latency = 0ms, .jitter = 2ms, .max_in_flight = 16});
  auto session = far.connect();
  std::atomic<bool> wrong{false};
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::array<std::byte, 50> bytes{};
      for (std::uint64_t i = 0; i < 50; ++i) {
        session.read(0, t * 1000 + i, bytes);
        if (ps::text_of(bytes) != all.substr(t * 1000 + i, 50)) wrong = true;
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    many_ranges ranges(100, 20);
    read_outcomes outcomes(100);
    session.read_many(ranges.requests, outcomes.listener());
    if (round % 2 == 0) session.cancel();
    outcomes.wait();
    CHECK(outcomes.each_once());
    CHECK(outcomes.failures() == outcomes.failures(ps::errc::stopped));
    for (std::size_t i = 0; i < 100; ++i)
      if (!outcomes.failed(i) && !ranges.right(i, all)) wrong = true;
  }
  for (std::thread& reader : readers) reader.join();
  CHECK_FALSE(wrong);
}

TEST_CASE("storage/simulated_storage: a source reads through it") {
  std::vector<std::byte> shard;
  ps::tar_writer out([&](ps::bytes_view piece) { shard.insert(shard.end(), piece.begin(), piece.end()); });
  for (int i = 0; i < 20; ++i) out.write(std::to_string(i), {{"cls", std::to_string(i)}});
  out.close();
  const ps::simulated_storage far(ps::memory_files().add("a.tar", shard), {.latency = 100us});
  std::int64_t sum = 0;
  for (auto&& b : (ps::webdataset(far) | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(5)).epoch(0))
    for (const std::int64_t label : get<"cls">(b)) sum += label;
  CHECK(sum == 190);
  CHECK(far.reads() > 0);
}
