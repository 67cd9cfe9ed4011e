// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/workers/wait_watchdog.hpp>

#include <penstock/core/message.hpp>

#include <cstdio>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void watchdog_thread::start(explain_type explain, const void* what) {
  if (after_.count() <= 0) return;
  explain_ = explain;
  what_ = what;
  thread_.start<&watchdog_thread::watch>(*this);
}

PENSTOCK_INLINE void watchdog_thread::begin_wait() noexcept {
  if (!thread_.joinable()) return;
  const std::lock_guard guard(lock_);
  waiting_ = true;
  ++wait_;
}

PENSTOCK_INLINE void watchdog_thread::end_wait() noexcept {
  if (!thread_.joinable()) return;
  const std::lock_guard guard(lock_);
  waiting_ = false;
}

PENSTOCK_INLINE void watchdog_thread::stop() noexcept {
  {
    const std::lock_guard guard(lock_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

PENSTOCK_INLINE void watchdog_thread::watch() {
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

}  // namespace penstock::inline v0_1
