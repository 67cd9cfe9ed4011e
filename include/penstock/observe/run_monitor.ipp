// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/observe/run_monitor.hpp>

#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE run_counters monitored_run::counters() const {
  const std::lock_guard guard(lock_);
  return run_ == nullptr ? last_ : ask_(run_);
}

PENSTOCK_INLINE bool monitored_run::ended() const {
  const std::lock_guard guard(lock_);
  return run_ == nullptr;
}

PENSTOCK_INLINE void monitored_run::end() noexcept {
  show_none();
  const std::lock_guard guard(lock_);
  try {
    last_ = ask_(run_);
  } catch (...) {  // no memory: what it had before is as good
  }
  run_ = nullptr;
}

PENSTOCK_INLINE void monitored_run::show_next(batch_viewer who) {
  const std::lock_guard guard(show_lock_);
  viewer_ = who;
  wanted_.store(true, std::memory_order_relaxed);
}

PENSTOCK_INLINE void monitored_run::show_none() {
  const std::lock_guard guard(show_lock_);
  viewer_ = {};
  wanted_.store(false, std::memory_order_relaxed);
}

PENSTOCK_INLINE void monitored_run::show(const void* batch) noexcept {
  const std::unique_lock guard(show_lock_, std::try_to_lock);
  if (!guard.owns_lock() || viewer_.look == nullptr) return;
  const batch_viewer who = std::exchange(viewer_, {});
  wanted_.store(false, std::memory_order_relaxed);
  who.look(who.self, batch);
}

}  // namespace penstock::inline v0_1::detail
