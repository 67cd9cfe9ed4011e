// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/workers/thread.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace penstock::inline v0_1 {

/// Reports on standard error what the consumer is waiting for once it has waited longer than `after`, and
/// again each time that period passes.
///
/// The consumer calls `begin_wait` and `end_wait`; the thread mostly sleeps and checks eight times per
/// period.
class watchdog_thread {
 public:
  explicit watchdog_thread(std::chrono::milliseconds after) : after_(after) {}
  ~watchdog_thread() { stop(); }

  /// `explain(what, line)` appends what is being worked on; the watchdog's thread calls it.
  using explain_type = void (*)(const void* what, std::string& line);
  void start(explain_type explain, const void* what);
  void begin_wait() noexcept;
  void end_wait() noexcept;
  void stop() noexcept;
  [[nodiscard]] std::uint64_t lines() const {
    const std::lock_guard guard(lock_);
    return lines_;
  }

 private:
  /// How often it checks: waking it for every batch would cost too much.
  [[nodiscard]] std::chrono::milliseconds period() const {
    return std::max(std::chrono::milliseconds(1), after_ / 8);
  }

  void watch();

  std::chrono::milliseconds after_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool waiting_ = false, stop_ = false;
  std::uint64_t wait_ = 0, lines_ = 0;
  explain_type explain_ = nullptr;
  const void* what_ = nullptr;
  joined_thread thread_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/engine/workers/wait_watchdog.ipp>
#endif
