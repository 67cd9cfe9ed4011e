// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/read_ahead/request_queue.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/stage_chain.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

/// Whether a store answered a read by asking for fewer.
[[nodiscard]] PENSTOCK_INLINE bool asks_for_fewer(const std::exception_ptr& failed) noexcept {
  try {
    std::rethrow_exception(failed);
  } catch (const error& e) {
    return e.retry_after_ms().has_value();
  } catch (...) {
    return false;
  }
}

}  // namespace detail

PENSTOCK_INLINE request_queue::target::target(const session_view& session) : session_(session) {
  if (!session.in_background())
    threads_ = std::make_unique<threaded_reads>(session, std::span<const std::string>(), threads);
  slow_downs_ = session.limits().counters.slow_downs;
}

PENSTOCK_INLINE void request_queue::target::read_many(std::span<const read_request> requests,
                                                      read_listener listener) {
  if (threads_)
    threads_->read_many(requests, listener);
  else
    session_.read_many(requests, listener);
}

PENSTOCK_INLINE void request_queue::target::cancel() noexcept {
  if (threads_) threads_->cancel();
  session_.cancel();
}

PENSTOCK_INLINE request_queue::target* request_queue::target_of(const session_view& session) noexcept {
  for (target& one : targets_)
    if (one.session_.self() == session.self()) return &one;
  try {
    target fresh(session);
    const std::lock_guard guard(lock_);
    return &targets_.emplace_back(std::move(fresh));
  } catch (...) {
    return nullptr;
  }
}

PENSTOCK_INLINE void request_queue::make_room(std::size_t requests) {
  const std::lock_guard guard(lock_);
  if (used_ + requests <= made_) return;
  const std::size_t more = std::max(used_ + requests - made_, max_per_call);
  items_.reserve(items_.size() + 1);
  auto fresh = std::make_unique<item[]>(more);
  for (std::size_t i = 0; i < more; ++i) fresh[i].next = std::exchange(free_, &fresh[i]);
  items_.push_back(std::move(fresh));
  made_ += more;
}

PENSTOCK_INLINE void request_queue::add(target& to, object_id object, std::uint64_t offset,
                                        mutable_bytes into, range_store::read& read,
                                        std::uint64_t row) noexcept {
  std::unique_lock held(lock_);
  if (stopped_) {
    held.unlock();
    store_->end(read, false);
    return;
  }
  item& one = *free_;
  free_ = one.next;
  ++used_;
  one = {&to, object, offset, row, 0, into, &read};
  (waiting_ == nullptr ? waiting_ : last_waiting_->next) = &one;
  last_waiting_ = &one;
}

PENSTOCK_INLINE void request_queue::start() noexcept {
  std::unique_lock held(lock_);
  pass_on(held);
}

PENSTOCK_INLINE void request_queue::link(item& one) noexcept {
  one.next = nullptr;
  one.before = newest_;
  (newest_ == nullptr ? oldest_ : newest_->next) = &one;
  newest_ = &one;
}

PENSTOCK_INLINE void request_queue::unlink(item& one) noexcept {
  (one.before == nullptr ? oldest_ : one.before->next) = one.next;
  (one.next == nullptr ? newest_ : one.next->before) = one.before;
}

PENSTOCK_INLINE bool request_queue::may_begin(const item& one) {
  if (!one.to->session_.traits().latency) return true;
  const std::size_t allowed = one.to->session_.limits().max_in_flight;
  std::size_t wanted = live_ == nullptr ? 0 : live_->requests();
  if (wanted == 0) wanted = maximum_.value_or(allowed == 0 ? usual : allowed);
  limit_.bound(allowed == 0 ? wanted : std::min(wanted, allowed));
  return in_flight_ < limit_.now();
}

// The lock is released while requests are passed on.
PENSTOCK_INLINE void request_queue::pass_on(std::unique_lock<std::mutex>& held) noexcept {
  if (passing_) return;
  passing_ = true;
  std::array<read_request, max_per_call> together;
  const read_listener listener{this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                                 static_cast<request_queue*>(self)->ended(
                                     *reinterpret_cast<item*>(detail::to_size(tag)), failed);
                               }};
  for (;;) {
    target* to = nullptr;
    std::size_t count = 0;
    const std::uint64_t now = waiting_ == nullptr ? 0 : detail::now_ns();
    while (waiting_ != nullptr && count < together.size() && (to == nullptr || waiting_->to == to) &&
           may_begin(*waiting_)) {
      item& one = *waiting_;
      waiting_ = one.next;
      to = one.to;
      link(one);
      one.begun_ns = now;
      if (to->session_.traits().latency) {
        ++in_flight_;
        limit_.begun(now);
      }
      together[count++] = {one.object, one.offset, one.bytes, reinterpret_cast<std::uintptr_t>(&one)};
      if (watch_ != nullptr) watch_->requested(&one, one.object, one.offset, one.bytes.size(), now);
    }
    if (count == 0) break;
    const std::uint64_t seen = cancels_;
    held.unlock();
    to->read_many({together.data(), count}, listener);
    held.lock();
    if (cancels_ == seen) continue;
    held.unlock();  // the cancellation may have come before these
    to->cancel();
    held.lock();
  }
  passing_ = false;
}

PENSTOCK_INLINE void request_queue::ended(item& one, const std::exception_ptr& failed) noexcept {
  range_store::read& read = *one.read;
  if (watch_ != nullptr) watch_->let_go(&one);
  {
    std::unique_lock held(lock_);
    unlink(one);
    target& to = *one.to;
    if (to.session_.traits().latency) {
      --in_flight_;
      const std::uint64_t now = detail::now_ns(), before = to.slow_downs_;
      to.slow_downs_ = to.session_.limits().counters.slow_downs;
      if (to.slow_downs_ != before || (failed && detail::asks_for_fewer(failed)))
        limit_.slow_down(one.begun_ns, now);
      else
        limit_.ended(now, failed ? 0 : one.bytes.size(), waiting_ != nullptr);
    }
    one.next = std::exchange(free_, &one);
    --used_;
    pass_on(held);
  }
  store_->end(read, failed == nullptr);  // the store may be gone afterwards
}

PENSTOCK_INLINE void request_queue::drop_waiting(bool for_good) noexcept {
  item* first = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (for_good)
      stopped_ = true;
    else
      ++cancels_;
    first = std::exchange(waiting_, nullptr);
    last_waiting_ = nullptr;
  }
  while (first != nullptr) {
    item& one = *std::exchange(first, first->next);
    range_store::read& read = *one.read;
    {
      const std::lock_guard guard(lock_);
      one.next = std::exchange(free_, &one);
      --used_;
    }
    store_->end(read, false);
  }
}

PENSTOCK_INLINE void request_queue::cancel() noexcept {
  drop_waiting(false);
  for (target& one : targets_) one.cancel();
}

PENSTOCK_INLINE std::size_t request_queue::max_in_flight() const {
  const std::lock_guard guard(lock_);
  return limit_.now();
}

// Requests begin in the order in which they were added.
PENSTOCK_INLINE std::uint64_t request_queue::first_row(std::uint64_t none) const {
  const std::lock_guard guard(lock_);
  const item* const first = oldest_ != nullptr ? oldest_ : waiting_;
  return first == nullptr ? none : std::min(first->row, none);
}

PENSTOCK_INLINE std::optional<open_read> request_queue::oldest() const {
  std::optional<open_read> found;
  const std::lock_guard guard(lock_);
  if (oldest_ != nullptr) {
    found = {oldest_->object, oldest_->offset, 1, detail::now_ns() - oldest_->begun_ns, {}};
    const session_report of = oldest_->to->session_.report();
    if (found->object < of.names.size()) found->name = of.names[found->object];
  }
  for (const target& one : targets_) found = older_of(found, one.session_.report().oldest);
  return found;
}

PENSTOCK_INLINE request_limit::request_limit(std::size_t maximum) noexcept
    : maximum_(std::max<std::size_t>(1, maximum)), now_(std::min(maximum_, first)) {}

PENSTOCK_INLINE void request_limit::bound(std::size_t maximum) noexcept {
  maximum_ = std::max<std::size_t>(1, maximum);
}

// Requests that began before a change are left out of what is measured: `skipped` of them.
PENSTOCK_INLINE void request_limit::measure_again(std::size_t skipped) noexcept {
  skips_ = skipped;
  ended_ = 0;
  bytes_ = 0;
}

PENSTOCK_INLINE void request_limit::ended(std::uint64_t now_ns, std::uint64_t bytes, bool waiting) noexcept {
  if (!waiting) {  // the limit did not decide how many were in flight
    measure_again(0);
    since_ = now_ns;
    return;
  }
  if (skips_ != 0) {
    --skips_;
    since_ = now_ns;
    return;
  }
  bytes_ += bytes;
  ++ended_;
  const std::size_t round = phase_ == phase::doubling ? now() : std::max<std::size_t>(32, 2 * now());
  if (ended_ < round || now_ns <= since_) return;
  const double per_second = static_cast<double>(bytes_) * 1e9 / static_cast<double>(now_ns - since_);
  since_ = now_ns;
  measure_again(0);
  round_over(per_second);
}

PENSTOCK_INLINE void request_limit::round_over(double per_second) noexcept {
  now_ = now();
  switch (phase_) {
    case phase::doubling:
      if (per_second < 1.3 * best_) {  // the last doubling brought little
        now_ = std::max<std::size_t>(1, now_ / 4 * 3);
        phase_ = phase::resting;
        measure_again(now_);
      } else if (now_ == maximum_) {
        phase_ = phase::resting;
        rests_ = rest_ = long_rest;
      } else {
        best_ = per_second;
        now_ = std::min(2 * now_, maximum_);
      }
      return;
    case phase::resting:
      if (rests_ != 0)
        --rests_;
      else
        try_other(per_second);
      return;
    case phase::more: {
      const double more = static_cast<double>(now_) / static_cast<double>(before_) - 1;
      return settle(per_second >= best_ * (1 + more / 2), per_second);
    }
    case phase::fewer:
      return settle(per_second >= 0.97 * best_, per_second);
  }
}

// Begins to compare the speed now with that of more requests, or of fewer.
PENSTOCK_INLINE void request_limit::try_other(double per_second) noexcept {
  if (maximum_ == 1) return;
  if (now_ == maximum_) more_is_next_ = false;
  if (now_ == 1) more_is_next_ = true;
  best_ = per_second;
  before_ = now_;
  now_ = more_is_next_ ? std::min(maximum_, now_ + std::max<std::size_t>(1, now_ / 4))
                       : now_ - std::max<std::size_t>(1, now_ / 5);
  phase_ = more_is_next_ ? phase::more : phase::fewer;
  measure_again(before_);
}

PENSTOCK_INLINE void request_limit::settle(bool kept, double per_second) noexcept {
  phase_ = phase::resting;
  if (kept) {  // perhaps there is more to gain in this direction
    rests_ = 0;
    rest_ = short_rest;
    return try_other(per_second);
  }
  now_ = before_;
  more_is_next_ = !more_is_next_;
  rests_ = rest_;
  rest_ = std::min(long_rest, 2 * rest_);
  measure_again(now_);
}

PENSTOCK_INLINE void request_limit::slow_down(std::uint64_t begun_ns, std::uint64_t now_ns) noexcept {
  if (begun_ns < slowed_ns_) return;
  slowed_ns_ = now_ns;
  now_ = std::max<std::size_t>(1, now() / 2);
  phase_ = phase::resting;
  more_is_next_ = true;
  rest_ = short_rest;
  rests_ = after_slow_ = std::min(long_rest, 2 * after_slow_);
  since_ = now_ns;
  measure_again(now_);
}

}  // namespace penstock::inline v0_1
