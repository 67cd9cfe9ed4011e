// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead/read_planner.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void read_planner::start(const feed& next, std::uint64_t row, hinter who,
                                         thread_place* place) {
  const std::lock_guard guard(mutex_);
  if (stop_) return;
  who_ = who;
  place_ = place;
  feed_ = next;
  feed_.limit(limit_of_feed());
  row_ = row;
  epoch_ = next.epoch();
  try {
    thread_.start<&read_planner::follow>(*this);
    started_.store(true, std::memory_order_relaxed);
  } catch (const std::system_error&) {
  }
}

PENSTOCK_INLINE void read_planner::passed(std::uint64_t row) noexcept {
  if (!started_.load(std::memory_order_relaxed)) return;  // in most runs nobody wants to know
  std::uint64_t before = passed_.load(std::memory_order_relaxed);
  do {
    if (before >= row) return;
  } while (!passed_.compare_exchange_weak(before, row, std::memory_order_seq_cst));
  if (row < wakes_at_.load(std::memory_order_seq_cst)) return;
  { const std::lock_guard guard(mutex_); }  // it either waits or has not looked yet
  changed_.notify_one();
}

PENSTOCK_INLINE bool read_planner::limit(std::uint64_t epochs, bool ends) {
  bool good = true;
  {
    const std::lock_guard guard(mutex_);
    limited_ = true;
    limit_ = epochs;
    ends_ = ends;
    feed_.limit(limit_of_feed());
    ++changes_;
    good = !ends || feed_.epoch() < epochs || (feed_.epoch() == epochs && feed_.step() == 0);
  }
  changed_.notify_one();
  return good;
}

PENSTOCK_INLINE void read_planner::restart(const feed& now, std::uint64_t row) {
  std::unique_lock held(mutex_);
  ++changes_;
  // otherwise the thread, which has the lock whenever it is not busy, would go on until it waits
  ++restarts_;
  changed_.notify_one();
  idle_.wait(held, [this] { return !busy_; });
  --restarts_;
  list_.forget();
  listed_ = false;
  feed_ = now;
  feed_.limit(limit_of_feed());
  row_ = row;
  passed_.store(std::min(row, passed_.load(std::memory_order_relaxed)), std::memory_order_seq_cst);
  epoch_ = now.epoch();
  held.unlock();
  changed_.notify_one();
}

PENSTOCK_INLINE void read_planner::stop() noexcept {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

// Cutting an epoch may take a pass over it, with the lock released meanwhile.
PENSTOCK_INLINE bool read_planner::can_go_on(std::unique_lock<std::mutex>& held) {
  if (!limited_ || !list_.has_room()) return false;
  if (listed_) return true;
  if (feed_.epoch() > epoch_.load(std::memory_order_relaxed) + max_epochs) return false;
  if (row_ >= passed_.load(std::memory_order_relaxed) + max_rows) return false;
  if (!feed_.is_cut()) {
    feed next = feed_;
    const std::uint64_t changes = changes_;
    held.unlock();
    (void)next.ready();
    held.lock();
    if (changes != changes_ || stop_ || !next.is_cut()) return false;
    feed_ = std::move(next);
  }
  return feed_.ready();
}

PENSTOCK_INLINE bool read_planner::go_on(std::unique_lock<std::mutex>& held) {
  if (!listed_) {
    next_.run_row = row_;
    feed_.prepare(next_, 1);
  }
  bool failed = false;
  busy_ = true;
  held.unlock();
  list_.begin();
  try {
    who_.plan_read(who_.self, next_, list_);
  } catch (...) {  // advice that could not be given
    failed = true;
  }
  held.lock();
  listed_ = !list_.all_known();
  if (!listed_) row_ += next_.slots;
  busy_ = false;
  idle_.notify_all();
  // A storage that fails is not asked again and again as fast as it can say no.
  constexpr std::chrono::milliseconds after_failure(10);
  if (failed) changed_.wait_for(held, after_failure, [this] { return stop_ || restarts_ != 0; });
  return !listed_;
}

PENSTOCK_INLINE void read_planner::tell(std::unique_lock<std::mutex>& held) noexcept {
  const bool ends = ends_ && !listed_ && feed_.epoch() >= feed_.limit();
  const std::uint64_t seen = row_;
  busy_ = true;
  held.unlock();
  const auto begin = clock::now();
  list_.tell(passed_.load(std::memory_order_relaxed), seen, ends);
  told_ = clock::now();
  took_ = told_ - begin;
  held.lock();
  busy_ = false;
  idle_.notify_all();
}

// Until the run has gone on; and so long that telling costs little.
PENSTOCK_INLINE void read_planner::wait(std::unique_lock<std::mutex>& held) {
  constexpr clock::duration least = std::chrono::microseconds(200), maximum = std::chrono::milliseconds(10),
                            longest = std::chrono::milliseconds(100);
  const clock::duration rest = std::clamp<clock::duration>(50 * took_, least, maximum);
  const std::uint64_t changes = changes_, stood = passed_.load(std::memory_order_relaxed);
  const auto changed = [&] { return stop_ || changes != changes_; };
  if (changed_.wait_for(held, rest, changed)) return;
  wakes_at_.store(stood + 1, std::memory_order_seq_cst);
  changed_.wait_for(held, std::max<clock::duration>(longest, 50 * took_),
                    [&] { return changed() || passed_.load(std::memory_order_seq_cst) != stood; });
  wakes_at_.store(no_row, std::memory_order_relaxed);
}

PENSTOCK_INLINE void read_planner::follow() noexcept {
  constexpr std::chrono::milliseconds often(10);
  if (place_ != nullptr) place_->enter();
  std::unique_lock held(mutex_);
  while (!stop_) {
    if (restarts_ != 0) {
      changed_.wait(held);
      continue;
    }
    bool goes_on = false;
    try {
      goes_on = can_go_on(held) && !stop_ && restarts_ == 0 && go_on(held);
    } catch (...) {  // the run will say why its next step cannot be made
      goes_on = false;
    }
    if (stop_) break;
    if (restarts_ != 0 || (goes_on && clock::now() - told_ < often)) continue;
    tell(held);
    if (!goes_on && !stop_) wait(held);
  }
}

}  // namespace penstock::inline v0_1
