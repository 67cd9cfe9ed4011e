// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/read_ahead/range_list.hpp>
#include <penstock/run/engine/workers/thread.hpp>
#include <penstock/run/engine/workers/thread_place.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>

namespace penstock::inline v0_1 {

/// Tells the sessions that plan by it what the run will read: follows the feed as far ahead as they can
/// remember, and at most so many rows or epochs, in a thread of its own, and says where the run stands, also
/// while it stands still: a cache that others fill wants to hear of their blocks, too. A block that a rank of
/// many needs at all it needs within a few epochs. Nothing is read: where the samples of a shard are is told
/// when its index is there, which the run loads when it comes to that shard.
///
/// An epoch after the last one that the run is known to have is expected, unless the run was told how many
/// epochs there are.
/// Cost: for each sample what its `ranges` cost, and a lock; while the run stands still, what it costs to
/// tell it ten times a second.
class read_planner {
 public:
  /// It looks no further ahead than this: so many rows, and epochs after the one where the run stands.
  static constexpr std::uint64_t max_rows = std::uint64_t{1} << 24, max_epochs = 8;

  read_planner() = default;
  read_planner(const read_planner&) = delete;
  read_planner& operator=(const read_planner&) = delete;
  ~read_planner() { stop(); }

  /// Begins at a feed, whose next row has this number. `who` must outlive this. Called once. If no thread can
  /// be started, nobody is told anything.
  void start(const feed& next, std::uint64_t row, hinter who, thread_place* place);
  /// The run has read everything that the rows before this one need. A smaller number than before changes
  /// nothing, and nor does any before `start`. Any thread.
  void passed(std::uint64_t row) noexcept;
  /// The rows that are requested now are of this epoch. Any thread.
  void stands_in(std::uint64_t epoch) noexcept { epoch_.store(epoch, std::memory_order_relaxed); }
  /// The run has at least so many epochs, and if `ends`, no more; nothing is told before this was called.
  /// False if more was told already, so that `restart` is due. Any thread.
  [[nodiscard]] bool limit(std::uint64_t epochs, bool ends);
  /// Everything told so far is void: the run goes on at this feed, whose next row has this number.
  void restart(const feed& now, std::uint64_t row);
  void stop() noexcept;

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::uint64_t no_row = std::numeric_limits<std::uint64_t>::max();

  void follow() noexcept;
  [[nodiscard]] bool can_go_on(std::unique_lock<std::mutex>& held);
  /// False if it cannot be told yet.
  [[nodiscard]] bool go_on(std::unique_lock<std::mutex>& held);
  void tell(std::unique_lock<std::mutex>& held) noexcept;
  void wait(std::unique_lock<std::mutex>& held);
  [[nodiscard]] std::uint64_t limit_of_feed() const noexcept { return ends_ ? limit_ : no_row; }

  hinter who_;
  thread_place* place_ = nullptr;
  feed feed_;
  placement next_;
  planned_reads list_;
  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::uint64_t row_ = 0;       // of the next row to tell of
  std::uint64_t limit_ = 1;     // epochs
  std::uint64_t changes_ = 0;   // of the feed or its limit, by others
  std::uint64_t restarts_ = 0;  // that wait for the thread
  bool listed_ = false;         // `next_` was prepared, and not all of it could be told
  bool limited_ = false, ends_ = false, stop_ = false, busy_ = false;
  clock::time_point told_;  // these two are of the thread
  clock::duration took_{0};
  std::atomic<std::uint64_t> passed_{0}, epoch_{0}, wakes_at_{no_row};
  std::atomic<bool> started_{false};
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead/read_planner.ipp>
#endif
