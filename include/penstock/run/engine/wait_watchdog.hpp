// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/run/engine/thread.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace penstock::inline v0_1 {

/// Says on standard error what the consumer waits for, once it has waited longer than `after`, and again
/// after each such time.
///
/// `begin_wait` and `end_wait` are the consumer's; the thread sleeps most of the time and looks eight times
/// in that period.
class watchdog_thread {
 public:
  explicit watchdog_thread(std::chrono::milliseconds after) : after_(after) {}
  ~watchdog_thread() { stop(); }

  /// `explain(what, line)` appends what is being worked on; it is called from the watchdog's thread.
  using explain_type = void (*)(const void* what, std::string& line);
  void start(explain_type explain, const void* what);
  void begin_wait() noexcept;
  void end_wait() noexcept;
  void stop() noexcept;
  /// How many lines were written.
  [[nodiscard]] std::uint64_t lines() const {
    const std::lock_guard guard(lock_);
    return lines_;
  }

 private:
  /// How often it looks: a wake-up per batch would cost more than it is worth.
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
#include <penstock/run/engine/wait_watchdog.ipp>
#endif
