// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/options.hpp>
#include <penstock/run/engine/read_ahead/fetcher.hpp>
#include <penstock/run/engine/read_ahead/range_list.hpp>
#include <penstock/run/engine/read_ahead/read_planner.hpp>
#include <penstock/run/engine/tuning/live_limits.hpp>
#include <penstock/run/engine/workers/observers.hpp>
#include <penstock/run/engine/workers/thread.hpp>
#include <penstock/run/engine/workers/thread_place.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/storage/range_store.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>

namespace penstock::inline v0_1 {

/// How far a run reads ahead.
struct ahead_sizes {
  std::uint64_t bytes = 0;  ///< kept at once
  std::uint64_t rows = 0;   ///< the maximum number of rows opened or requested at once
  bool latency = false;     ///< whether the source has latency
  request_options requests{};
};

/// Requests the bytes of samples before they are used: follows the feed a given number of samples ahead of
/// what is opened. If the reader reports ranges and takes fetched bytes, they are read into a store (see
/// `fetcher`); otherwise they are hints.
///
/// If a session plans by what is read far ahead, a `read_planner` tells it.
///
/// The order is known, so requests are exact, even across the end of an epoch. Runs in its own thread, or,
/// for hints in a run without workers, in the consumer's.
class read_ahead {
 public:
  /// The maximum number of samples fetched ahead, whatever the limit.
  static constexpr std::uint64_t max_rows_ahead = 1u << 16;

  read_ahead() = default;
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;
  ~read_ahead() { stop(); }

  /// Follows the feed from `first` on. `who`, `limits`, and `watch`, which hears of each request, must
  /// outlive this. `limits` says how far ahead; at 0 it follows without requesting. Its own thread enters
  /// `place`, if there is one; threads that a storage starts for it inherit that.
  void start(const feed& first, hinter who, const run_watch& watch, const live_limits& limits,
             bool own_thread, ahead_sizes sizes, thread_place* place = nullptr);
  /// The store that workers take from; null if nothing is fetched.
  [[nodiscard]] range_store* store() const noexcept {
    fetcher* const there = at_work_.load(std::memory_order_acquire);
    return there == nullptr ? nullptr : &there->store();
  }
  /// See `request_queue::oldest`. Any thread.
  [[nodiscard]] std::optional<open_read> oldest_read() const;
  /// A block of so many slots was opened.
  void opened(std::uint64_t slots);
  /// All rows before this one have been evaluated.
  void passed(std::uint64_t row) noexcept {
    range_store* const there = store();
    if (there == nullptr) return;
    there->passed(row);
    read_planner_.passed(row);
  }
  /// Epochs from this one on are not read ahead; `ends`: nor will they be later.
  void limit(std::uint64_t epochs, bool ends = false);
  /// Tells it that the limit has changed. Any thread.
  void look_again();
  /// Releases the workers that wait for bytes, and drops what was fetched, until `restart`.
  void halt() noexcept {
    if (range_store* const there = store()) there->halt();
  }
  /// Restarts where the feed stands now, dropping what was fetched. No worker may be active.
  void restart(const feed& now);
  /// Releases the workers that wait for bytes, because the run is over. Any thread.
  void let_go() noexcept;
  /// Ends the thread, and all reads.
  void stop() noexcept;

 private:
  static constexpr std::uint64_t max_rows = 64, max_rows_far = 1024;

  [[nodiscard]] bool cut_epoch(std::unique_lock<std::mutex>& held);
  [[nodiscard]] std::uint64_t ahead() const noexcept;
  [[nodiscard]] std::uint64_t step() const noexcept;
  [[nodiscard]] bool behind();
  void wait_for_more(std::unique_lock<std::mutex>& held);
  void ask_once(std::unique_lock<std::mutex>& held);
  void hint_next();
  void list_next();
  void catch_up();
  void follow() noexcept;

  hinter who_;
  feed feed_;
  placement next_;  // of the thread that follows the feed, which may be the consumer's
  const run_watch* watch_ = nullptr;
  const live_limits* limits_ = nullptr;
  thread_place* place_ = nullptr;
  std::uint64_t max_rows_ = max_rows, max_bytes_ = 0;  // requested together
  std::uint64_t opened_ = 0, asked_ = 0;
  std::uint64_t wakes_at_ = 0;  // so many slots must be opened before the thread has anything to do
  std::uint64_t row_ = 0;       // of the next row to request
  std::mutex lock_;
  std::condition_variable more_, idle_;
  bool stop_ = false, asking_ = false, restarts_ = false;
  std::uint64_t restarted_ = 0;  // number of restarts so far
  range_list ranges_;
  unsigned resident_blocks_ = 0;   // consecutive blocks found in memory
  std::uint64_t left_out_to_ = 0;  // blocks that begin before this row are skipped
  detail::owned<fetcher> fetcher_;
  std::atomic<fetcher*> at_work_{nullptr};  // the same, for other threads
  read_planner read_planner_;
  bool plans_reads_ = false;  // the read_planner was started
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/read_ahead.ipp>
#endif
