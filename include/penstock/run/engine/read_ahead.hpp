// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/observers.hpp>
#include <penstock/run/engine/thread.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/run/feed/placement.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace penstock::inline v0_1 {

/// Who asks for bytes on behalf of `read_ahead`: code of the plan, which knows its reader and its orders.
struct hinter {
  void* self = nullptr;  ///< null: the source takes no hints
  /// Asks for the samples of a placement. May throw.
  void (*hint)(void* self, const placement& samples) = nullptr;
};

/// Asks the source for the bytes of samples before their turn: follows the feed a given number of samples
/// ahead of what is opened.
///
/// The order is known, so what it asks for is exact, across the end of an epoch too. Runs in a thread of its
/// own (a hint may block in the kernel), or in the consumer's where the run has no workers.
class read_ahead {
 public:
  read_ahead() = default;
  read_ahead(const read_ahead&) = delete;
  read_ahead& operator=(const read_ahead&) = delete;
  ~read_ahead() { stop(); }

  /// Follows `first` on. `who` and `watch`, which is told each time that bytes were asked for, outlive it.
  void start(const feed& first, hinter who, const run_watch& watch, std::uint64_t samples, bool own_thread);
  /// A block of so many slots was opened.
  void opened(std::uint64_t slots);
  void limit(std::uint64_t epochs);
  /// Begins again where the feed stands now.
  void restart(const feed& now);
  void stop() noexcept;

 private:
  [[nodiscard]] bool behind() const { return feed_.more() && asked_ < opened_ + samples_; }
  void ask_once(std::unique_lock<std::mutex>& held);
  void catch_up();
  void follow() noexcept;

  hinter who_;
  feed feed_;
  placement next_;  // of whoever follows: the thread, or else the consumer
  const run_watch* watch_ = nullptr;
  std::uint64_t samples_ = 0, opened_ = 0, asked_ = 0;
  std::mutex lock_;
  std::condition_variable more_;
  bool stop_ = false;
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/read_ahead.ipp>
#endif
