// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead/read_ahead.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void read_ahead::start(const feed& first, hinter who, const run_watch& watch,
                                       const live_limits& limits, bool own_thread, ahead_sizes sizes,
                                       thread_place* place) {
  who_ = who;
  feed_ = first;
  watch_ = &watch;
  limits_ = &limits;
  place_ = place;
  max_rows_ = sizes.latency ? max_rows_far : max_rows;
  max_bytes_ = sizes.requests.max_coalesced_with(sizes.latency);
  if (who_.ranges != nullptr && own_thread) {
    try {
      fetcher_ = detail::owned(new fetcher(sizes.bytes, sizes.rows, sizes.requests, &limits));
    } catch (const std::bad_alloc&) {
      throw error(errc::io, {"the machine does not give ", sizes.bytes,
                             " bytes to keep what is fetched ahead; write fewer, as in prefetch(64_MiB) "
                             "before batch, or prefetch(0) to fetch nothing"})
          .in_stage("prefetch");
    }
    if (watch.any()) fetcher_->queue().observe(watch);
    at_work_.store(fetcher_.get(), std::memory_order_release);
  }
  if (own_thread) thread_.start<&read_ahead::follow>(*this);
}

PENSTOCK_INLINE void read_ahead::opened(std::uint64_t slots) {
  if (who_.self == nullptr) return;
  bool wakes = false;
  {
    const std::lock_guard guard(lock_);
    opened_ += slots;
    wakes = opened_ >= wakes_at_;
  }
  if (!thread_.joinable())
    catch_up();
  else if (wakes)
    more_.notify_one();
}

PENSTOCK_INLINE void read_ahead::limit(std::uint64_t epochs, bool ends) {
  if (who_.self == nullptr) return;
  {
    const std::lock_guard guard(lock_);
    feed_.limit(epochs);
    if (!read_planner_.limit(epochs, ends) && plans_reads_) read_planner_.restart(feed_, row_);
  }
  more_.notify_one();
}

PENSTOCK_INLINE void read_ahead::look_again() {
  { const std::lock_guard guard(lock_); }  // the following thread either waits or has not looked yet
  more_.notify_one();
}

PENSTOCK_INLINE void read_ahead::restart(const feed& now) {
  if (who_.self == nullptr) return;
  std::unique_lock held(lock_);
  restarts_ = true;
  ++restarted_;
  if (fetcher_) {
    halt();
    idle_.wait(held, [this] { return !asking_; });
    fetcher_->end_reads();
    fetcher_->store().clear();
  }
  feed_ = now;
  opened_ = asked_ = row_ = left_out_to_ = 0;
  if (plans_reads_) read_planner_.restart(now, 0);
  restarts_ = false;
  more_.notify_one();
}

PENSTOCK_INLINE void read_ahead::let_go() noexcept {
  fetcher* const there = at_work_.load(std::memory_order_acquire);
  if (there == nullptr) return;
  there->store().stop();
  there->queue().stop();
}

PENSTOCK_INLINE std::optional<open_read> read_ahead::oldest_read() const {
  fetcher* const there = at_work_.load(std::memory_order_acquire);
  return there == nullptr ? std::nullopt : there->queue().oldest();
}

PENSTOCK_INLINE void read_ahead::stop() noexcept {
  let_go();
  {
    const std::lock_guard guard(lock_);
    stop_ = true;
  }
  more_.notify_one();
  if (thread_.joinable()) thread_.join();
  read_planner_.stop();
  if (fetcher_) fetcher_->end_reads();
}

// Cuts the current epoch, which may take a pass over it, with the lock released meanwhile. False if it cannot
// be cut, or if the feed has moved elsewhere by then.
PENSTOCK_INLINE bool read_ahead::cut_epoch(std::unique_lock<std::mutex>& held) {
  if (feed_.is_cut()) return true;
  feed next = feed_;
  const std::uint64_t begun = restarted_;
  held.unlock();
  (void)next.ready();
  held.lock();
  if (begun != restarted_ || restarts_ || stop_ || !next.is_cut()) return false;
  next.limit(feed_.limit());
  feed_ = std::move(next);
  return true;
}

// How many samples may be requested beyond what is opened.
PENSTOCK_INLINE std::uint64_t read_ahead::ahead() const noexcept {
  return fetcher_ ? std::min(limits_->ahead(), max_rows_ahead) : limits_->ahead();
}

// Requests are made several samples at a time, so that nearby ones are read together.
PENSTOCK_INLINE std::uint64_t read_ahead::step() const noexcept {
  return fetcher_ ? std::clamp<std::uint64_t>(limits_->ahead() / 4, 1, max_rows_) : 1;
}

PENSTOCK_INLINE bool read_ahead::behind() { return feed_.ready() && asked_ + step() <= opened_ + ahead(); }

// Waits until there are samples to request. Blocks that are left out anyway are passed over together: waking
// this thread for each would cost more than the blocks do.
PENSTOCK_INLINE void read_ahead::wait_for_more(std::unique_lock<std::mutex>& held) {
  wakes_at_ = 0;
  if (feed_.ready()) {
    const std::uint64_t next = asked_ + step() + (left_out_to_ - std::min(left_out_to_, row_));
    wakes_at_ = next - std::min(next, ahead());
  }
  more_.wait(held);
  wakes_at_ = 0;
}

// Requests the ranges or hints of one block; with ranges, of further blocks while there are few. The lock is
// released while the source is asked.
PENSTOCK_INLINE void read_ahead::ask_once(std::unique_lock<std::mutex>& held) {
  const std::uint64_t begin = watch_->now();
  std::uint64_t samples = 0, first = row_;
  do {
    next_.run_row = row_;
    feed_.prepare(next_, 1);
    row_ += next_.slots;
    asked_ += next_.slots == 0 ? 1 : next_.slots;
    if (limits_->ahead() == 0) break;  // it is being evaluated already
    samples += next_.batches[0].valid;
    held.unlock();
    try {
      // A batch far longer than usual has no room in the store: workers read it themselves.
      if (!fetcher_)
        hint_next();
      else if (next_.run_row >= left_out_to_ && row_ - store()->passed() <= store()->rows())
        list_next();
    } catch (...) {  // a hint may fail: the worker that reads the sample reports the error
    }
    held.lock();
  } while (fetcher_ && !restarts_ && !stop_ && row_ - first < max_rows_ && ranges_.bytes() < max_bytes_ &&
           feed_.is_cut() && behind());
  if (samples == 0) return;
  const bool in_vain = restarts_ || stop_;
  if (fetcher_ && ranges_.planned() && !in_vain && !plans_reads_) {
    read_planner_.start(feed_, row_, who_, place_);
    plans_reads_ = true;
  }
  const std::uint64_t asked = row_, epoch = next_.epoch;
  held.unlock();
  if (fetcher_) {
    try {
      if (!in_vain) fetcher_->fetch(ranges_);
    } catch (...) {  // out of memory: workers read for themselves
    }
    ranges_.clear();
    if (plans_reads_ && !in_vain) {
      read_planner_.stands_in(epoch);
      // Workers read for themselves what is in memory, and `passed` tells when they are done.
      if (resident_blocks_ == 0) read_planner_.passed(fetcher_->queue().first_row(asked));
    }
  }
  if (watch_->any()) {
    watch_->asked_ahead(begin, watch_->now(), samples);
    if (fetcher_ && who_.report != nullptr) watch_->counted(who_.report(who_.self).counters, false);
  }
  held.lock();
}

PENSTOCK_INLINE void read_ahead::hint_next() {
  if (who_.hint != nullptr) return who_.hint(who_.self, next_);
  ranges_.only_hint();
  who_.ranges(who_.self, next_, ranges_);
}

// Once several blocks in a row were in memory, most are skipped, so that checking costs almost nothing; the
// store learns of it in advance, because workers may be there first.
PENSTOCK_INLINE void read_ahead::list_next() {
  constexpr unsigned seen_resident = 4, max_left_out = 31;
  const std::size_t listed = ranges_.entries().size();
  const std::uint64_t resident = ranges_.resident();
  who_.ranges(who_.self, next_, ranges_);
  resident_blocks_ =
      ranges_.entries().size() == listed && ranges_.resident() != resident ? resident_blocks_ + 1 : 0;
  if (resident_blocks_ < seen_resident) return;
  left_out_to_ = row_ + std::min(2 * resident_blocks_, max_left_out) * next_.slots;
  store()->leave_out(next_.run_row, left_out_to_);
}

PENSTOCK_INLINE void read_ahead::catch_up() {
  std::unique_lock held(lock_);
  while (!stop_ && cut_epoch(held) && behind()) ask_once(held);
}

PENSTOCK_INLINE void read_ahead::follow() noexcept {
  if (place_ != nullptr) place_->enter();
  std::unique_lock held(lock_);
  while (!stop_) {
    if (restarts_) {
      more_.wait(held);
      continue;
    }
    const std::uint64_t begun = restarted_, limit = feed_.limit();
    if (!cut_epoch(held)) {
      // Unless the feed was changed while the lock was released, in which case it may well be cut now.
      if (!stop_ && begun == restarted_ && limit == feed_.limit()) more_.wait(held);
      continue;
    }
    if (!behind()) {
      wait_for_more(held);
      continue;
    }
    asking_ = true;
    bool failed = false;
    try {
      ask_once(held);
    } catch (...) {  // a hint may fail: the worker that reads the sample reports the error
      if (!held.owns_lock()) held.lock();
      failed = true;
    }
    asking_ = false;
    idle_.notify_all();
    if (failed) return;
  }
}

}  // namespace penstock::inline v0_1
