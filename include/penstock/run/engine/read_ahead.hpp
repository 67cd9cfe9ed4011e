// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/fetcher.hpp>
#include <penstock/run/engine/live_limits.hpp>
#include <penstock/run/engine/observers.hpp>
#include <penstock/run/engine/thread.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>
#include <penstock/storage/range_store.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace penstock::inline v0_1 {

/// What asks for bytes on behalf of `read_ahead`: code of the plan, which knows its reader and its orders.
struct hinter {
  void* self = nullptr;  ///< null: the source takes no hints
  /// Asks for the samples of a placement. May throw.
  void (*hint)(void* self, const placement& samples) = nullptr;
  /// Lists the ranges of the samples of a placement instead, where its readers take what is fetched. May
  /// throw.
  void (*ranges)(void* self, const placement& samples, range_list& into) = nullptr;
};

/// How far a run reads ahead.
struct ahead_sizes {
  std::uint64_t bytes = 0;  ///< that are kept at once
  std::uint64_t turns = 0;  ///< rows that are opened or asked for at once, at most
};

/// Asks the source for the bytes of samples before their turn: follows the feed a given number of samples
/// ahead of what is opened. Where the reader tells ranges and takes what is fetched, they are read into a
/// store (see `fetcher`); elsewhere they are hints.
///
/// The order is known, so what it asks for is exact, across the end of an epoch too. Runs in a thread of its
/// own, or, with hints alone, in the consumer's where the run has no workers.
class read_ahead {
 public:
  /// Samples that are fetched ahead at most, whatever the limit.
  static constexpr std::uint64_t most_turns = 1u << 16;

  read_ahead() = default;
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;
  ~read_ahead() { stop(); }

  /// Follows `first` on. `who`, `limits` and `watch`, which is told each time that bytes were asked for,
  /// outlive it.
  /// `limits` says how far ahead; where it says 0, it follows without asking.
  void start(const feed& first, hinter who, const run_watch& watch, const live_limits& limits,
             bool own_thread, ahead_sizes sizes);
  /// What workers take from; null where nothing is fetched.
  [[nodiscard]] range_store* store() const noexcept { return store_.load(std::memory_order_acquire); }
  /// A block of so many slots was opened.
  void opened(std::uint64_t slots);
  /// All rows before this one have been evaluated.
  void passed(std::uint64_t turn) noexcept {
    if (range_store* const there = store()) there->passed(turn);
  }
  void limit(std::uint64_t epochs);
  /// The limit has moved. Any thread.
  void look_again();
  /// Lets workers go that wait for bytes, and drops what was fetched, until `restart`.
  void halt() noexcept {
    if (range_store* const there = store()) there->halt();
  }
  /// Begins again where the feed stands now: what was fetched is dropped. No worker is at work.
  void restart(const feed& now);
  /// Lets those go that wait for bytes; the run is over. Any thread.
  void let_go() noexcept;
  /// Ends the thread, and all reads.
  void stop() noexcept;

 private:
  static constexpr std::uint64_t most_at_once = 64, most_bytes = 1_MiB;

  [[nodiscard]] bool cut_epoch(std::unique_lock<std::mutex>& held);
  [[nodiscard]] bool behind();
  void ask_once(std::unique_lock<std::mutex>& held);
  void list_next();
  void catch_up();
  void follow() noexcept;

  hinter who_;
  feed feed_;
  placement next_;  // of whoever follows: the thread, or else the consumer
  const run_watch* watch_ = nullptr;
  const live_limits* limits_ = nullptr;
  std::uint64_t opened_ = 0, asked_ = 0;
  std::uint64_t turn_ = 0;  // of the row that is asked for next
  std::mutex lock_;
  std::condition_variable more_, idle_;
  bool stop_ = false, asking_ = false, restarts_ = false;
  std::uint64_t restarted_ = 0;  // how often it has begun again
  range_list ranges_;
  unsigned warm_blocks_ = 0, left_out_ = 0;  // blocks in a row that were in memory; that are not looked at
  std::unique_ptr<fetcher> fetcher_;
  std::atomic<range_store*> store_{nullptr};
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead.ipp>
#endif
