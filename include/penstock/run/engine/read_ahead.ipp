// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void read_ahead::start(const feed& first, hinter who, const run_watch& watch,
                                       std::uint64_t samples, bool own_thread) {
  who_ = who;
  feed_ = first;
  watch_ = &watch;
  samples_ = samples;
  if (own_thread) thread_.start<&read_ahead::follow>(*this);
}

PENSTOCK_INLINE void read_ahead::opened(std::uint64_t slots) {
  if (who_.self == nullptr) return;
  {
    const std::lock_guard guard(lock_);
    opened_ += slots;
  }
  if (thread_.joinable())
    more_.notify_one();
  else
    catch_up();
}

PENSTOCK_INLINE void read_ahead::limit(std::uint64_t epochs) {
  if (who_.self == nullptr) return;
  const std::lock_guard guard(lock_);
  feed_.limit(epochs);
}

PENSTOCK_INLINE void read_ahead::restart(const feed& now) {
  if (who_.self == nullptr) return;
  const std::lock_guard guard(lock_);
  feed_ = now;
  opened_ = asked_ = 0;
}

PENSTOCK_INLINE void read_ahead::stop() noexcept {
  {
    const std::lock_guard guard(lock_);
    stop_ = true;
  }
  more_.notify_one();
  if (thread_.joinable()) thread_.join();
}

/// One block's worth of hints; the lock is free while the kernel is asked.
PENSTOCK_INLINE void read_ahead::ask_once(std::unique_lock<std::mutex>& held) {
  feed_.prepare(next_, 1);
  asked_ += next_.slots == 0 ? 1 : next_.slots;
  held.unlock();
  const std::uint64_t begin = watch_->now();
  try {
    who_.hint(who_.self, next_);
  } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
  }
  if (watch_->any()) watch_->asked_ahead(begin, watch_->now(), next_.batches[0].valid);
  held.lock();
}

PENSTOCK_INLINE void read_ahead::catch_up() {
  std::unique_lock held(lock_);
  while (!stop_ && behind()) ask_once(held);
}

PENSTOCK_INLINE void read_ahead::follow() noexcept {
  std::unique_lock held(lock_);
  while (!stop_) {
    if (behind()) {
      try {
        ask_once(held);
      } catch (...) {  // a hint is only a hint: whoever reads the sample will say what is wrong
        if (!held.owns_lock()) held.lock();
        return;
      }
    } else {
      more_.wait(held);
    }
  }
}

}  // namespace penstock::inline v0_1
