// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/background_view.hpp>
#include <penstock/storage/reads/waiting_reads.hpp>
#include <penstock/storage/resilience/read_times.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>

#include <array>
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
#include <string>
#include <thread>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// When a second read is started.
struct hedge_rules {
  double max_extra_requests = 0.05;  // second reads per read, at most
  std::size_t observations = 32;
  std::chrono::microseconds min_delay{0};
  std::uint64_t bytes = 64_MiB;  // of buffers, at most
};

/// Passes the reads of one session to another, and starts a second one for those that are late. The work
/// behind `hedged`.
///
/// The memory of the two reads: the second one has a buffer of its own, because a read that is ignored goes
/// on writing. The first one writes to where its caller wants the bytes, if the session can `abandon` it:
/// when the second has won, the first is abandoned, and the second's bytes are copied once the first has
/// ended.
/// Otherwise the first one has a buffer, too, and every read is copied once. Buffers belong to the line, and
/// live until both reads have ended; small ones of first reads are kept for others. All that are in use
/// together have at most so many bytes as the rules say: beyond that, no second read is started, and a read
/// that would need a buffer is passed on without one.
///
/// Each read is passed on by whichever thread finds it, one at a time, as in `retry_queue`. One thread,
/// started by the first read, watches the clock.
/// Cost: two locks per read; an allocation for each second read, and for first reads of more than 1 MiB that
/// need a buffer; otherwise none once as many reads, of this size, were in flight before.
/// Threads: as for a session.
class hedged_reads {
  using clock = std::chrono::steady_clock;
  struct item;
  /// One of the two reads of an item; its address is its tag.
  struct link {
    item* of = nullptr;
    link* next = nullptr;
    bool second = false;
  };
  struct item {
    waiting_read what{};
    std::uint64_t cancels = 0;  // when it was requested
    std::size_t group = 0;
    clock::time_point begun{};
    link first{}, second{};
    item *older = nullptr, *newer = nullptr;  // of its group
    bool listed = false;                      // it may get a second read
    bool buffered = false;                    // the first read goes to `first_bytes`
    bool first_runs = false, second_runs = false, second_good = false, told = false;
    unsigned pins = 0;            // threads that use it without the lock
    std::exception_ptr failed{};  // of the first read
    buffer first_bytes{}, second_bytes{};
  };
  struct link_list {
    link *first = nullptr, *last = nullptr;
    void append(link& one) noexcept;
    link* pop() noexcept;
  };
  /// Reads of similar size: those in flight without a second one, oldest first, and the times of recent ones.
  struct size_group {
    item *oldest = nullptr, *newest = nullptr;
    read_times times;
  };

 public:
  using rules_type = hedge_rules;

  hedged_reads(const hedge_rules& rules, std::span<const std::string> names);
  hedged_reads(const hedged_reads&) = delete;
  hedged_reads& operator=(const hedged_reads&) = delete;
  /// `stop()` must have been called, and the session that reads are passed to must have ended.
  ~hedged_reads() = default;

  void use(session_view session, background_view background) noexcept;

  [[nodiscard]] std::uint64_t size(object_id id);
  [[nodiscard]] object_version version(object_id id);
  void read(object_id id, std::uint64_t offset, mutable_bytes into);
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept;
  void cancel() noexcept;
  void stop() noexcept;
  /// What it counted itself, including what the session behind it would count if it did.
  [[nodiscard]] session_report report() const noexcept;

 private:
  using buffers = std::array<buffer, 2>;
  using counter = std::atomic<std::uint64_t>;
  static constexpr std::size_t max_per_call = 64, groups = 33, max_kept = 1_MiB;
  static constexpr std::int64_t one_hedge = 1'000'000, max_saved = 32 * one_hedge;

  void await_cancel();

  // The caller of these holds the lock.
  [[nodiscard]] item& make_item(std::size_t bytes);
  void list(item& one) noexcept;
  void unlist(item& one) noexcept;
  void unpin(item& one, buffers& unused) noexcept;
  [[nodiscard]] std::size_t take_ready(std::span<read_request> into) noexcept;
  void pass_on(std::unique_lock<std::mutex>& held) noexcept;
  /// Starts the second reads that are due, and returns when to look again.
  [[nodiscard]] clock::time_point hedge_late(clock::time_point now) noexcept;

  void ended(link& which, std::exception_ptr failed) noexcept;
  void work() noexcept;

  std::chrono::microseconds min_delay_;
  std::int64_t for_each_read_;  // what a read adds to `saved_`
  std::uint64_t max_bytes_;     // of buffers in use
  std::span<const std::string> names_;
  std::optional<session_view> session_;
  background_view background_;

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<item>> items_;
  item* free_ = nullptr;  // linked by `newer`
  link_list ready_, stopped_;
  std::array<size_group, groups> groups_{};
  std::int64_t saved_ = 0;
  std::uint64_t cancels_ = 0;
  bool passing_ = false, ends_ = false;
  bool repeats_cancel_ = false;  // as in `retry_queue`
  std::thread thread_;

  counter requests_{0}, bytes_{0}, hedges_{0}, hedges_won_{0}, held_{0};  // held_: changes under the lock
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/resilience/hedged_reads.ipp>
#endif
