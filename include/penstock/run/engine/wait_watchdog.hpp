// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/run/engine/thread.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace penstock::inline v0_1 {

/// Says on standard error what the consumer waits for, once it has waited longer than `after`, and again
/// after each such time.
///
/// `begin_wait` and `end_wait` are the consumer's; the thread sleeps most of the time and looks eight times
/// in that period.
template <class = void>
class basic_watchdog_thread {
 public:
  explicit basic_watchdog_thread(std::chrono::milliseconds after) : after_(after) {}
  ~basic_watchdog_thread() { stop(); }

  /// `explain(what, line)` appends what is being worked on; it is called from the watchdog's thread.
  using explain_type = void (*)(const void* what, std::string& line);
  void start(explain_type explain, const void* what) {
    if (after_.count() <= 0) return;
    explain_ = explain;
    what_ = what;
    thread_.start<&basic_watchdog_thread::watch>(*this);
  }
  void begin_wait() noexcept {
    if (!thread_.joinable()) return;
    const std::lock_guard guard(lock_);
    waiting_ = true;
    ++wait_;
  }
  void end_wait() noexcept {
    if (!thread_.joinable()) return;
    const std::lock_guard guard(lock_);
    waiting_ = false;
  }
  void stop() noexcept {
    {
      const std::lock_guard guard(lock_);
      stop_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  }
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

  [[gnu::cold]] void watch() {
    std::unique_lock held(lock_);
    std::uint64_t last = 0;
    std::chrono::milliseconds waited{0};
    while (!stop_) {
      if (!waiting_) {
        changed_.wait_for(held, period());
        waited = {};
        continue;
      }
      if (wait_ != last) {
        last = wait_;
        waited = {};
      }
      const std::uint64_t before = wait_;
      changed_.wait_for(held, period(), [this] { return stop_; });
      if (stop_ || !waiting_ || wait_ != before) continue;
      waited += period();
      if (waited % after_ >= period()) continue;
      std::string line = detail::text({"penstock: no batch for ", waited.count() / 1000, ".",
                                       waited.count() % 1000 / 100, " s; waiting for "});
      explain_(what_, line);
      line += "\n";
      std::fputs(line.c_str(), stderr);
      ++lines_;
    }
  }

  std::chrono::milliseconds after_;
  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool waiting_ = false, stop_ = false;
  std::uint64_t wait_ = 0, lines_ = 0;
  explain_type explain_ = nullptr;
  const void* what_ = nullptr;
  joined_thread thread_;
};
using watchdog_thread = basic_watchdog_thread<>;

}  // namespace penstock::inline v0_1
