// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/request_recorder.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/resilience/retry_policy.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The times of recent reads of similar size, and when a read is late: after more than 98 % of them, and
/// after three times their median. The owner holds the lock.
class read_times {
 public:
  static constexpr std::size_t kept = 256, between = 16;

  /// `least` reads are needed to tell.
  void need(std::size_t least) noexcept { least_ = least; }
  /// Adds a time; true if `late` may have changed, which is so after every 16 times.
  bool add(std::chrono::nanoseconds time) noexcept {
    const auto microseconds = static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count() / 1000));
    recent_[count_++ % kept] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(microseconds, std::numeric_limits<std::uint32_t>::max()));
    if (count_ < least_ || (late_ && count_ % between != 0)) return false;
    look();
    return true;
  }
  /// After what time a read is late; nothing while too few are known.
  [[nodiscard]] std::optional<std::chrono::microseconds> late() const noexcept { return late_; }

 private:
  void look() noexcept {
    auto sorted = recent_;
    const std::size_t known = std::min(count_, kept);
    const auto at = [&sorted](std::size_t i) { return sorted.begin() + static_cast<std::ptrdiff_t>(i); };
    std::sort(sorted.begin(), at(known));
    const std::uint64_t slow = *at(std::min(known - 1, known * 98 / 100)), median = *at(known / 2);
    late_ = std::chrono::microseconds(std::max(slow, 3 * median));
  }

  std::array<std::uint32_t, kept> recent_{};  // in microseconds; a ring
  std::size_t least_ = 0, count_ = 0;
  std::optional<std::chrono::microseconds> late_;
};

struct watched_read {
  std::chrono::steady_clock::time_point begun{};
  std::size_t group = 0;
  watched_read *older = nullptr, *newer = nullptr;  // of its group
  bool watched = false;
};

/// Finds the reads that are late, and counts how many second ones there may be. The owner holds the lock.
class late_reads {
  using clock = std::chrono::steady_clock;

 public:
  explicit late_reads(const hedge_rules& rules)
      : min_delay_(rules.min_delay),
        for_each_read_(static_cast<std::int64_t>(rules.max_extra_requests * static_cast<double>(one_hedge))) {
    for (size_group& one : groups_) one.times.need(rules.observations);
  }

  /// A first read begins; `may_be_late`: it may get a second one. True if `wake` may be sooner now.
  bool begun(watched_read& one, std::size_t bytes, clock::time_point now, bool may_be_late) noexcept {
    saved_ = std::min(max_saved, saved_ + for_each_read_);
    one.begun = now;
    one.group = std::min(groups - 1, to_size(std::bit_width(bytes)) / 2);
    if (!may_be_late) return false;
    size_group& in = groups_[one.group];
    one.watched = true;
    one.newer = nullptr;
    one.older = in.newest;
    (in.newest == nullptr ? in.oldest : in.newest->newer) = &one;
    in.newest = &one;
    return in.oldest == &one;
  }
  /// It has ended, or gets no second read.
  void leave(watched_read& one) noexcept {
    if (!std::exchange(one.watched, false)) return;
    size_group& in = groups_[one.group];
    (one.older == nullptr ? in.oldest : one.older->newer) = one.newer;
    (one.newer == nullptr ? in.newest : one.newer->older) = one.older;
  }
  /// The bytes of a read are there. True if `wake` may be sooner now.
  bool succeeded(const watched_read& one) noexcept {
    return groups_[one.group].times.add(clock::now() - one.begun);
  }
  /// Takes one that is late, if there is one and it may get a second read.
  [[nodiscard]] watched_read* take(clock::time_point now) noexcept {
    if (saved_ < one_hedge) return nullptr;
    for (const size_group& in : groups_) {
      if (late_at(in) > now) continue;
      watched_read* const one = in.oldest;
      leave(*one);
      return one;
    }
    return nullptr;
  }
  /// It does get one.
  void spend() noexcept { saved_ -= one_hedge; }
  /// When to look again.
  [[nodiscard]] clock::time_point wake(clock::time_point now) const noexcept {
    auto first = clock::time_point::max();
    for (const size_group& in : groups_) first = std::min(first, late_at(in));
    return saved_ < one_hedge ? std::max(first, now + std::chrono::milliseconds(1)) : first;
  }

 private:
  /// Reads of similar size: those in flight without a second one, oldest first, and the times of recent ones.
  struct size_group {
    watched_read *oldest = nullptr, *newest = nullptr;
    read_times times;
  };
  static constexpr std::size_t groups = 33;
  static constexpr std::int64_t one_hedge = 1'000'000, max_saved = 32 * one_hedge;

  [[nodiscard]] clock::time_point late_at(const size_group& of) const noexcept {
    const auto late = of.times.late();
    if (of.oldest == nullptr || !late) return clock::time_point::max();
    return of.oldest->begun + std::max(*late, min_delay_);
  }

  std::chrono::microseconds min_delay_;
  std::int64_t for_each_read_;  // what a read adds to `saved_`
  std::int64_t saved_ = 0;
  std::array<size_group, groups> groups_{};
};

/// Passes the reads of one session to another: tries them again, limits how many are in flight, and starts a
/// second one for those that are late, as the policy says. The work behind `retrying`, `throttled` and
/// `hedged`, and of `http` and `s3`.
///
/// Reads in the background wait in one of two queues: for room, or for the time of their next attempt. They
/// are passed on by whichever thread finds that some can be: the caller's, the one that reported a read, or
/// the retry_queue's own, which the first `read_many` starts and which watches the clock. Only one thread at
/// a time does so; another leaves its reads to that one.
/// The limit on reads in flight is that of `throttled`.
/// With retries and a limit, a store from which eight reads in a row failed is taken to be down: one read at
/// a time asks whether it is back, with the waits of attempts between, and no budget is spent. After
/// `attempts` such questions reads fail.
///
/// Memory, as `hedged` has it: a read that is ignored goes on writing, so that two reads of the same bytes
/// never write to one place. Small buffers of first reads are kept for others. A read that would need a
/// buffer beyond `hedged_options::bytes` is passed on without one, and gets no second read.
///
/// Blocking reads become reads in the background, if the session has those, where second reads may be started
/// and where they have more than 16 MiB; see `part_reads`. They come before other reads.
///
/// Cost: two locks per read; an allocation for each second read, and for first reads of more than 1 MiB that
/// need a buffer; otherwise none once as many reads were in flight before.
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
  struct item;
  /// One of the two reads of an item that may be in flight; its address is its tag.
  struct link {
    item* of = nullptr;
    bool runs = false;
    clock::time_point sent{};
  };
  /// Items in the order of their arrival.
  struct item_list {
    item *first = nullptr, *last = nullptr;
    void append(item& one) noexcept;
    item* pop() noexcept;
  };
  /// A read in the background.
  struct item : watched_read {
    waiting_read what{};
    std::uint64_t cancels = 0;  // when it was requested
    std::uint64_t round = 0;    // when it was passed on
    begun_read known;
    clock::time_point due{}, first_failed{};
    link first{this}, second{this};
    bool buffered = false;     // the first read goes to `first_bytes`
    bool second_good = false;  // its bytes are there, and the first read has been abandoned
    bool told = false;
    unsigned pins = 0;            // threads that use it without the lock
    std::exception_ptr failed{};  // of the first read, while the second runs
    buffer first_bytes{}, second_bytes{};
    item_list* among = nullptr;  // where it waits for room
    item* next = nullptr;
  };
  /// Passes blocking reads on before others.
  struct urgent {
    retry_queue& line;
    void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
      line.begin(requests, listener, line.urgent_);
    }
  };
  using buffers = std::array<buffer, 2>;

 public:
  /// Refers to the names of the objects, for errors.
  retry_queue(const retry_policy& policy, std::span<const std::string> names);
  /// `stop()` must have been called, and the session that reads are passed to must have ended.
  ~retry_queue() = default;

  void use(session_view session) noexcept { session_ = session; }

  [[nodiscard]] std::uint64_t size(object_id id);
  [[nodiscard]] object_version version(object_id id);
  void read(object_id id, std::uint64_t offset, mutable_bytes into);
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
    begin(requests, listener, ready_);
  }
  /// Also ends the waits of blocking reads, with errc::stopped.
  void cancel() noexcept;
  /// As `cancel`; and from now on no read waits.
  void end_waits() noexcept {
    over_ = true;
    cancel();
  }
  /// Passes nothing on any more; reads that were not passed on are reported as errc::stopped.
  void stop() noexcept;

  /// What it counted itself, including what the session behind it would count if it did; its limit; and the
  /// oldest read that has not ended, or question about an object.
  [[nodiscard]] session_report report() const;
  [[nodiscard]] session_report limits() const noexcept {
    return {.counters = {.slow_downs = slow_downs_.load(std::memory_order_relaxed)},
            .counted = true,
            .max_in_flight = limit_.load(std::memory_order_relaxed)};
  }

 private:
  using counter = std::atomic<std::uint64_t>;
  static constexpr std::size_t max_per_call = 64, max_kept = 1_MiB;
  static constexpr std::uint32_t max_failed_in_a_row = 8;           // more: the store is down
  static constexpr std::uint64_t whole_object = ~std::uint64_t{0};  // the offset of `size` and `version`

  /// Asks the session in this thread until it succeeds.
  void insist(const read_request& what, void (*ask)(void* self), void* self);
  template <class Ask>
  void insist(const read_request& what, Ask&& ask) {
    insist(
        what, [](void* self) { (*static_cast<std::remove_reference_t<Ask>*>(self))(); }, &ask);
  }
  /// Waits for room, and returns the round.
  [[nodiscard]] std::uint64_t enter(const read_request& what, std::uint64_t cancels);
  void wait_until(clock::time_point due, const read_request& what, std::uint64_t cancels);
  [[noreturn, gnu::cold]] void throw_stopped(const read_request& what) const;

  // The caller of these holds the lock.
  /// `failed`: when the first attempt did; set by it.
  [[nodiscard]] retry_decision decide(const read_request& what, std::uint32_t attempt,
                                      const read_failure& why, bool cancelled,
                                      clock::time_point& failed) noexcept;
  void leave(std::uint64_t round, const read_failure* why) noexcept;
  [[nodiscard]] std::uint32_t note_outage(const read_request& what) noexcept;
  [[nodiscard]] std::size_t room() const noexcept { return outage_ != 0 ? 1 : limit_.load(); }
  [[nodiscard]] bool pauses() noexcept;
  [[nodiscard]] bool has_room() noexcept;
  [[nodiscard]] bool hedges() const noexcept { return late_.get() != nullptr; }
  [[nodiscard]] bool waits_for_room() const noexcept {
    return urgent_.first != nullptr || ready_.first != nullptr;
  }
  [[nodiscard]] item& make_item();
  void begin(std::span<const read_request> requests, read_listener listener, item_list& among) noexcept;
  void pass_on(std::unique_lock<std::mutex>& held) noexcept;
  [[nodiscard]] std::size_t take_ready(std::span<read_request> into) noexcept;
  [[nodiscard]] std::size_t take_late(std::span<read_request> into) noexcept;
  /// Whether there was room for that in the buffers.
  [[nodiscard]] bool hold(buffer& bytes, std::size_t size) noexcept;
  /// What need not be kept goes to `unused`, so that it can be given back without the lock.
  void drop_buffers(item& one, buffers& unused) noexcept;
  /// Keeps an item for others once it was told, both reads have ended, and no thread uses it.
  void release(item& one, buffers& unused) noexcept;

  void note(begun_read& one) noexcept;
  void forget(begun_read& one) noexcept;
  void succeeded(std::size_t bytes, std::uint32_t attempt) noexcept;
  [[nodiscard]] static std::exception_ptr finally(std::exception_ptr failed, std::uint32_t attempts,
                                                  const retry_decision& last) noexcept;
  void ended(link& which, std::exception_ptr failed) noexcept;
  void work() noexcept;

  retrier retries_;
  const retry_policy& policy_ = retries_.policy();
  std::span<const std::string> names_;
  std::optional<session_view> session_;

  mutable std::mutex lock_;
  std::condition_variable changed_, room_;      // for the retry_queue's thread and `stop`; for blocking reads
  std::vector<std::unique_ptr<item[]>> items_;  // `max_per_call` each
  item_list free_, ready_, urgent_, stopped_;
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

  owned<late_reads> late_;  // null: no second reads
  bool looks_for_late_ = false;
  std::uint64_t held_ = 0;  // bytes of buffers in use

  std::atomic<std::size_t> limit_;  // changes under the lock
  std::size_t in_flight_ = 0, waiting_for_room_ = 0, grown_ = 0;
  std::uint32_t failed_in_a_row_ = 0, outage_ = 0;  // outage_: questions whether the store is back
  std::uint64_t round_ = 0;
  clock::time_point paused_until_{}, failing_since_{};

  counter requests_{0}, bytes_{0}, slow_downs_{0}, retried_{0}, given_up_{0}, throttled_{0}, hedges_{0},
      hedges_won_{0};
  request_recorder recorded_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/retry_queue.ipp>
#endif
