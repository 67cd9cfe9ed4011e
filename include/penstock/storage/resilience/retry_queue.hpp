// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/background_view.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// What an exception says about trying again.
struct read_failure {
  bool may_pass = false, timed_out = false, unreachable = false;
  std::optional<std::uint64_t> asked_ms{};  // set if the store asked for fewer reads

  [[nodiscard]] static read_failure of(const error& failed) noexcept;
  [[nodiscard]] static read_failure of(const std::exception_ptr& failed) noexcept;
};

/// What a retry_queue does beyond passing reads on.
struct retry_rules {
  using milliseconds = std::chrono::milliseconds;

  std::uint32_t attempts = 1;  // of each read, including the first
  milliseconds initial_backoff{0}, max_backoff{0}, max_retry_after{0};
  milliseconds max_time{86'400'000}, max_unreachable_time{86'400'000};  // from first failure to last attempt
  std::uint64_t budget = 0;             // tokens for attempts after the first; 0: no limit
  std::optional<std::uint64_t> seed{};  // draws the waits; none: each retry_queue has its own
  std::size_t max_in_flight = 0;        // reads in flight, at most; 0: no limit
  milliseconds max_pause{0};            // of all reads, when the store asked for it
  std::stop_token stop{};               // ends what waits outside of a retry_queue

  /// Whether an attempt that begins at `due` is too late for a read that failed so, first at `failed`.
  [[nodiscard]] bool too_late(std::chrono::steady_clock::time_point due,
                              std::chrono::steady_clock::time_point failed,
                              const read_failure& why) const noexcept;
};

/// Tokens that attempts cost and successful reads give back, so that a store that is down is not asked more
/// often than one that is well. Source: AWS SDKs, retry mode "standard".
class retry_budget {
 public:
  static constexpr std::int64_t for_retry = 5, for_time_out = 10, if_asked = 1;

  explicit retry_budget(std::uint64_t tokens) noexcept;
  [[nodiscard]] bool take(std::int64_t cost) noexcept;
  /// Costs one load while the budget is full.
  void give(std::int64_t tokens) noexcept;

 private:
  std::int64_t maximum_;  // 0: no limit
  std::atomic<std::int64_t> left_;
};

/// "after 3 attempts", and why there are no more of them: the budget is spent, or the next would be too late.
[[nodiscard]] std::string attempts_text(std::uint32_t attempts, bool spent, bool late);

/// Differs from call to call, and from process to process.
[[nodiscard]] std::uint64_t arbitrary_seed() noexcept;

/// The wait after a failed attempt: exponential back-off with full jitter, drawn from seed, object, offset
/// and attempt.
[[nodiscard]] std::chrono::nanoseconds retry_wait(const retry_rules& rules, const read_request& what,
                                                  std::uint32_t attempt) noexcept;

/// Passes the reads of one session to another: tries them again, and limits how many are in flight. The work
/// behind `retrying` and `throttled`.
///
/// Reads in the background wait in one of two queues: for room, or for the time of their next attempt. They
/// are passed on by whichever thread finds that some can be: the caller's, the one that reported a read, or
/// the retry_queue's own, which the first `read_many` starts and which watches the clock. Only one thread at
/// a time does so; another leaves its reads to that one.
/// The limit on reads in flight follows AIMD: each successful round of reads raises it by one; a read that
/// the store answers by asking for fewer halves it, once for all the reads in flight at that time.
/// With retries and a limit, a store from which eight reads in a row failed is taken to be down: one read at
/// a time asks whether it is back, with the waits of attempts between, and no budget is spent. After
/// `attempts`
/// such questions reads fail.
///
/// Blocking reads of more than 16 MiB become several reads in the background, if the session has those; see
/// `part_reads`.
///
/// Cost: no allocation once as many reads were in flight before; a few locks per read.
/// Threads: as for a session.
class retry_queue {
  using clock = std::chrono::steady_clock;

  /// A read that has not ended, or a question about an object.
  struct begun_read {
    const read_request* what = nullptr;
    clock::time_point begun{};
    std::uint32_t attempt = 1;
    begun_read *next = nullptr, *before = nullptr;
  };
  /// A read in the background.
  struct item {
    waiting_read what{};
    std::uint64_t cancels = 0;  // when it was requested
    std::uint64_t round = 0;    // when it was passed on
    begun_read begun;
    clock::time_point due{};
    clock::time_point failed{};  // its first attempt
    item* next = nullptr;
  };
  /// Items in the order of their arrival.
  struct item_list {
    item *first = nullptr, *last = nullptr;
    void append(item& one) noexcept;
    item* pop() noexcept;
  };
  /// Whether and when a read is tried again.
  struct decision {
    bool again = false, spent = false, late = false;  // spent: the budget was
    clock::time_point due{};
  };

 public:
  using rules_type = retry_rules;

  /// Refers to the names of the objects, for errors.
  retry_queue(const retry_rules& rules, std::span<const std::string> names);
  retry_queue(const retry_queue&) = delete;
  retry_queue& operator=(const retry_queue&) = delete;
  /// `stop()` must have been called, and the session that reads are passed to must have ended.
  ~retry_queue() = default;

  /// Sets the session that reads are passed to.
  void use(session_view session, background_view background) noexcept;

  [[nodiscard]] std::uint64_t size(object_id id);
  [[nodiscard]] object_version version(object_id id);
  void read(object_id id, std::uint64_t offset, mutable_bytes into);
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept;
  /// Also ends the waits of blocking reads, with errc::stopped.
  void cancel() noexcept;
  /// From now on no read waits; call `cancel` after it.
  void end_waits() noexcept { over_ = true; }
  /// Passes nothing on any more; reads that were not passed on are reported as errc::stopped.
  void stop() noexcept;

  /// What it counted itself, including what the session behind it would count if it did; its limit; and the
  /// oldest read that has not ended, or question about an object.
  [[nodiscard]] session_report report() const;

 private:
  using call = void (*)(const session_view&, const read_request&, void* result);
  using counter = std::atomic<std::uint64_t>;
  static constexpr std::size_t max_per_call = 64;
  static constexpr std::uint32_t max_failed_in_a_row = 8;           // more: the store is down
  static constexpr std::uint64_t whole_object = ~std::uint64_t{0};  // the offset of `size` and `version`

  /// Calls the session in this thread until it succeeds.
  void insist(const read_request& what, call make, void* result);
  /// Waits for room, and returns the round.
  [[nodiscard]] std::uint64_t enter(const read_request& what, std::uint64_t cancels);
  void wait_until(clock::time_point due, const read_request& what, std::uint64_t cancels);
  [[noreturn, gnu::cold]] void throw_stopped(const read_request& what) const;

  // The caller of these holds the lock.
  /// `failed`: when the first attempt did; set by it.
  [[nodiscard]] decision decide(const read_request& what, std::uint32_t attempt, const read_failure& why,
                                bool cancelled, clock::time_point& failed) noexcept;
  void leave(std::uint64_t round, const read_failure* why) noexcept;
  [[nodiscard]] std::uint32_t note_outage(const read_request& what) noexcept;
  [[nodiscard]] std::size_t room() const noexcept { return outage_ != 0 ? 1 : limit_; }
  [[nodiscard]] bool pauses() noexcept;
  [[nodiscard]] bool has_room() noexcept;
  [[nodiscard]] item& make_item();
  void pass_on(std::unique_lock<std::mutex>& held) noexcept;
  [[nodiscard]] std::size_t take_ready(std::span<read_request> into) noexcept;

  void note(begun_read& one) noexcept;
  void forget(begun_read& one) noexcept;
  void succeeded(std::size_t bytes, std::uint32_t attempt) noexcept;
  [[nodiscard]] static std::exception_ptr finally(std::exception_ptr failed, std::uint32_t attempts,
                                                  const decision& last) noexcept;
  void ended(item& one, std::exception_ptr failed) noexcept;
  void work() noexcept;

  retry_rules rules_;
  std::span<const std::string> names_;
  std::optional<session_view> session_;
  background_view background_;
  retry_budget budget_;

  mutable std::mutex lock_;
  std::condition_variable changed_, room_;      // for the retry_queue's thread and `stop`; for blocking reads
  std::vector<std::unique_ptr<item[]>> items_;  // `max_per_call` each
  item_list free_, ready_, stopped_;
  begun_read *oldest_ = nullptr, *newest_ = nullptr;
  std::vector<item*> timed_;  // a heap, the earliest first; has room for all items
  std::size_t made_ = 0;
  counter cancels_{0};  // changes under the lock
  std::atomic<bool> over_{false};
  /// A cancellation came while reads were passed on, and will be repeated for those; a blocking read that
  /// begins now waits, lest it be ended too. Changes under the lock.
  std::atomic<bool> repeats_cancel_{false};
  bool passing_ = false, ends_ = false;
  std::thread thread_;

  std::size_t limit_, in_flight_ = 0, waiting_for_room_ = 0, grown_ = 0;
  std::uint32_t failed_in_a_row_ = 0, outage_ = 0;  // outage_: questions whether the store is back
  std::uint64_t round_ = 0;
  clock::time_point paused_until_{}, failing_since_{};

  counter requests_{0}, bytes_{0}, slow_downs_{0}, retries_{0}, given_up_{0}, throttled_{0};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/retry_queue.ipp>
#endif
