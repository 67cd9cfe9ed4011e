// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/resilience/retry_queue.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/hedged.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/resilience/retried_session.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>
#include <penstock/storage/storage_counters.hpp>
#include <penstock/storage/throttled.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/read_outcomes.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using penstock_test::deadline;
using penstock_test::read_outcomes;

TEST_CASE("storage/resilience/retry_queue: without a seed, each session draws its own waits") {
  CHECK(ps::detail::arbitrary_seed() != ps::detail::arbitrary_seed());
  CHECK_FALSE(ps::detail::policy_of(ps::retrying_options{}).seed);
  CHECK(ps::detail::policy_of(ps::retrying_options{.seed = 0}).seed == 0u);
}

namespace {

/// Reads in the background begin when the test says so.
struct slow_start {
  struct facts {
    std::atomic<bool> beginning{false}, may_begin{false};
    std::atomic<int> cancels{0}, early{0}, blocking{0};
  };
  struct session {
    std::shared_ptr<facts> shared;

    [[nodiscard]] std::uint64_t size(ps::object_id) const {
      ++shared->blocking;
      if (shared->beginning) ++shared->early;
      return 7;
    }
    [[nodiscard]] ps::object_version version(ps::object_id id) const { return {size(id), 0}; }
    void read(ps::object_id id, std::uint64_t, ps::mutable_bytes) const { (void)size(id); }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const {}
    void read_many(std::span<const ps::read_request> requests, ps::read_listener listener) const {
      shared->beginning = true;
      while (!shared->may_begin) std::this_thread::sleep_for(1ms);
      for (const auto& one : requests) listener.done(listener.self, one.tag, nullptr);
    }
    void cancel() const noexcept {
      if (++shared->cancels == 2) shared->beginning = false;  // the one for reads that were being passed on
    }
  };
  std::shared_ptr<facts> shared = std::make_shared<facts>();
  std::vector<std::string> list{"a"};

  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {shared}; }
};

template <class Storage>
void check_late_cancel(const slow_start& far, const Storage& where, bool reads) {
  auto session = where.connect();
  std::array<std::byte, 4> into{};
  read_outcomes outcomes(1);
  const ps::read_request one{0, 0, into, 0};
  std::jthread passes([&] { session.read_many({&one, 1}, outcomes.listener()); });
  while (!far.shared->beginning) std::this_thread::sleep_for(1ms);
  session.cancel();
  std::jthread later([&] {
    std::array<std::byte, 4> mine{};
    if (reads) session.read(0, 0, mine);
    CHECK(session.size(0) == 7);
  });
  // the blocking call may be made before the reads have begun, and must wait
  std::this_thread::sleep_for(20ms);
  far.shared->may_begin = true;
  passes.join();
  later.join();
  outcomes.wait();
  CHECK(far.shared->cancels == 2);
  CHECK(far.shared->early == 0);
  CHECK(far.shared->blocking == (reads ? 2 : 1));
}

}  // namespace

TEST_CASE("storage/resilience/retry_queue: a cancellation ends no read that begins after it") {
  const deadline limit("late cancellations");
  for (const bool limits : {false, true}) {
    const slow_start far;
    if (limits)
      check_late_cancel(far, ps::throttled(far), true);
    else
      check_late_cancel(far, ps::retrying(far), true);
  }
  const slow_start far;
  check_late_cancel(far, ps::hedged(far), false);
}

namespace {

/// Whose first reads fail.
struct down_at_first {
  struct session {
    std::shared_ptr<std::atomic<int>> failures, asked;

    [[nodiscard]] std::uint64_t size(ps::object_id) const { return 1'000'000; }
    [[nodiscard]] ps::object_version version(ps::object_id) const { return {1'000'000, 0}; }
    void read(ps::object_id, std::uint64_t, ps::mutable_bytes) const {
      ++*asked;
      if ((*failures)-- > 0) throw ps::error(ps::errc::io, "the store is down");
    }
    void will_need(ps::object_id, std::uint64_t, std::uint64_t) const {}
    void read_many(std::span<const ps::read_request> requests, ps::read_listener listener) const {
      for (const auto& one : requests) {
        std::exception_ptr failed;
        try {
          read(one.object, one.offset, one.into);
        } catch (...) {
          failed = std::current_exception();
        }
        listener.done(listener.self, one.tag, std::move(failed));
      }
    }
    void cancel() const noexcept {}
  };
  explicit down_at_first(int fails) : failures(std::make_shared<std::atomic<int>>(fails)) {}
  std::shared_ptr<std::atomic<int>> failures, asked = std::make_shared<std::atomic<int>>(0);
  std::vector<std::string> list{"a"};

  [[nodiscard]] std::span<const std::string> names() const { return list; }
  [[nodiscard]] session connect() const { return {failures, asked}; }
};

const ps::detail::retry_policy careful{
    .attempts = 6, .initial_backoff = 1ms, .max_backoff = 4ms, .budget = 100, .seed = 1, .max_in_flight = 4};

}  // namespace

TEST_CASE(
    "storage/resilience/retry_queue: a store that is down and comes back costs no read, however many wait") {
  const deadline limit("a store that was down");
  const down_at_first far(11);  // eight, and a few questions
  const ps::detail::retried_session<down_at_first> session(far, careful);
  std::vector<std::byte> into(1000);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 1000; ++i) requests.push_back({0, i, std::span(into).subspan(i, 1), i});
  read_outcomes outcomes(1000);
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.each_once());
  CHECK(outcomes.failures() == 0);
  CHECK(*far.asked == 1011);
  session.read(0, 0, into);
}

TEST_CASE(
    "storage/resilience/retry_queue: a store that stays down ends all reads, with few questions for each") {
  const deadline limit("a store that is down");
  const down_at_first far(1'000'000);
  const ps::detail::retried_session<down_at_first> session(far, careful);
  std::vector<std::byte> into(100);
  std::vector<ps::read_request> requests;
  for (std::size_t i = 0; i < 100; ++i) requests.push_back({0, i, std::span(into).subspan(i, 1), i});
  read_outcomes outcomes(100);
  session.read_many(requests, outcomes.listener());
  outcomes.wait();
  CHECK(outcomes.failures(ps::errc::io) == 100);
  CHECK(*far.asked <= 130);
  CHECK_THROWS_AS(session.read(0, 0, into), ps::error);
}

namespace {

/// Threads read, one of them many ranges at a time, and cancel; what is not cancelled gives the right bytes.
template <class Storage>
ps::storage_counters hammered(const Storage& far, const std::string& all,
                              const ps::detail::retry_policy& how) {
  const ps::detail::retried_session<Storage> session(far, how);
  std::atomic<bool> wrong{false};
  std::vector<std::jthread> readers;
  for (unsigned t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::array<std::byte, 50> bytes{};
      for (std::uint64_t i = 0; i < 50; ++i) {
        try {
          session.read(0, t * 1000 + i, bytes);
          if (ps::text_of(bytes) != all.substr(t * 1000 + i, 50) || session.size(0) != all.size())
            wrong = true;
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
    if (round % 3 == 0) CHECK(outcomes.failures() == 0);
    for (std::size_t i = 0; i < 100; ++i)
      if (!outcomes.failed(i) && ps::text_of(requests[i].into) != all.substr(requests[i].offset, 20))
        wrong = true;
  }
  readers.clear();
  CHECK_FALSE(wrong);
  CHECK(session.limits().max_in_flight == session.report().max_in_flight);
  while (session.report().counters.held != 0) std::this_thread::sleep_for(1ms);  // reads that lost
  return session.report().counters;
}

}  // namespace

TEST_CASE("storage/resilience/retry_queue: retries, a limit and second reads of one queue, in any storage") {
  const deadline limit("everything at once");
  std::string all(10'000, '\0');
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(i * 31 + (i >> 8));
  const ps::simulated_storage far(
      ps::memory_files().add("a", all),
      {.latency = 0ms, .jitter = 300us, .failing = 0.2, .stall_one_in = 60, .stall = 20ms});
  const ps::detail::retry_policy everything{
      .attempts = 10,
      .max_in_flight = 16,
      .hedges = ps::detail::hedge_rules{.max_extra_requests = 1, .observations = 1}};
  for (const auto& seen : {hammered(far, all, everything), hammered(ps::throttled(far), all, everything)}) {
    CHECK(seen.retries > 0);
    CHECK(seen.hedges > 0);
  }
}
