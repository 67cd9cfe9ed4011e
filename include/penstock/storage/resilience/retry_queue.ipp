// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/retry_queue.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/reads/part_reads.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE read_failure read_failure::of(const error& failed) noexcept {
  return {!failed.recurs(), failed.timed_out(), failed.unreachable(), failed.retry_after_ms()};
}
PENSTOCK_INLINE read_failure read_failure::of(const std::exception_ptr& failed) noexcept {
  try {
    std::rethrow_exception(failed);
  } catch (const error& e) {
    return of(e);
  } catch (...) {
    return {};
  }
}

PENSTOCK_INLINE bool retry_rules::too_late(std::chrono::steady_clock::time_point due,
                                           std::chrono::steady_clock::time_point failed,
                                           const read_failure& why) const noexcept {
  return due - failed > (why.unreachable ? std::min(max_time, max_unreachable_time) : max_time);
}

PENSTOCK_INLINE retry_budget::retry_budget(std::uint64_t tokens) noexcept
    : maximum_(static_cast<std::int64_t>(std::min<std::uint64_t>(tokens, 1'000'000'000))), left_(maximum_) {}

PENSTOCK_INLINE bool retry_budget::take(std::int64_t cost) noexcept {
  if (maximum_ == 0) return true;
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= cost)
    if (left_.compare_exchange_weak(left, left - cost, std::memory_order_relaxed)) return true;
  return false;
}

PENSTOCK_INLINE void retry_budget::give(std::int64_t tokens) noexcept {
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left < maximum_ &&
         !left_.compare_exchange_weak(left, std::min(maximum_, left + tokens), std::memory_order_relaxed)) {
  }
}

PENSTOCK_INLINE std::string attempts_text(std::uint32_t attempts, bool spent, bool late) {
  return text({"after ", attempts, attempts == 1 ? " attempt" : " attempts",
               spent  ? "; so many reads failed that the budget for retries is spent"
               : late ? "; another one would begin after retrying_options::max_time or max_unreachable_time"
                      : ""});
}

PENSTOCK_INLINE std::uint64_t arbitrary_seed() noexcept {
  static std::atomic<std::uint64_t> calls{0};
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const auto place = reinterpret_cast<std::uintptr_t>(&calls);  // differs where programs are placed at random
  return fingerprint()
      .add(static_cast<std::uint64_t>(now))
      .add(static_cast<std::uint64_t>(::getpid()))
      .add(static_cast<std::uint64_t>(place))
      .add(calls.fetch_add(1, std::memory_order_relaxed))
      .value();
}

PENSTOCK_INLINE std::chrono::nanoseconds retry_wait(const retry_rules& rules, const read_request& what,
                                                    std::uint32_t attempt) noexcept {
  double maximum = std::chrono::duration<double>(rules.initial_backoff).count();
  const double ceiling = std::chrono::duration<double>(rules.max_backoff).count();
  for (std::uint32_t i = 1; i < attempt && maximum < ceiling; ++i) maximum *= 2;
  rng draw(rules.seed.value_or(0), attempt, what.offset, what.object);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(maximum, ceiling) * draw.uniform()));
}

PENSTOCK_INLINE void retry_queue::item_list::append(item& one) noexcept {
  one.next = nullptr;
  (first == nullptr ? first : last->next) = &one;
  last = &one;
}
PENSTOCK_INLINE retry_queue::item* retry_queue::item_list::pop() noexcept {
  item* const one = first;
  if (one != nullptr) first = one->next;
  return one;
}

PENSTOCK_INLINE retry_queue::retry_queue(const retry_rules& rules, std::span<const std::string> names)
    : rules_(rules), names_(names), budget_(rules.budget), limit_(rules.max_in_flight) {
  if (!rules_.seed) rules_.seed = arbitrary_seed();
}

PENSTOCK_INLINE void retry_queue::use(session_view session, background_view background) noexcept {
  session_ = session;
  background_ = background;
}

PENSTOCK_INLINE std::uint64_t retry_queue::size(object_id id) {
  std::uint64_t found = 0;
  const auto ask = [](const session_view& session, const read_request& what, void* result) {
    *static_cast<std::uint64_t*>(result) = session.size(what.object);
  };
  insist({id, whole_object, {}}, ask, &found);
  return found;
}
PENSTOCK_INLINE object_version retry_queue::version(object_id id) {
  object_version found;
  const auto ask = [](const session_view& session, const read_request& what, void* result) {
    *static_cast<object_version*>(result) = session.version(what.object);
  };
  insist({id, whole_object, {}}, ask, &found);
  return found;
}
PENSTOCK_INLINE void retry_queue::read(object_id id, std::uint64_t offset, mutable_bytes into) {
  if (background_ && into.size() > part_reads::longest) return read_by_parts(*this, id, offset, into);
  const auto ask = [](const session_view& session, const read_request& what, void*) {
    session.read(what.object, what.offset, what.into);
  };
  insist({id, offset, into}, ask, nullptr);
}

PENSTOCK_INLINE void retry_queue::insist(const read_request& what, call make, void* result) {
  const std::uint64_t cancels = cancels_.load(std::memory_order_relaxed);
  begun_read mine{&what, clock::now()};
  {
    const std::lock_guard guard(lock_);
    note(mine);
  }
  const struct ending {
    retry_queue& of;
    begun_read& one;
    ~ending() {
      const std::lock_guard guard(of.lock_);
      of.forget(one);
    }
  } forgets{*this, mine};
  clock::time_point first_failed{};
  for (std::uint32_t attempt = 1;; ++attempt) {
    const std::uint64_t round = enter(what, cancels);
    if (what.offset != whole_object) requests_.fetch_add(1, std::memory_order_relaxed);
    std::exception_ptr failed;
    try {
      make(*session_, what, result);
    } catch (...) {
      failed = std::current_exception();
    }
    const read_failure why = failed ? read_failure::of(failed) : read_failure{};
    decision next;
    if (failed || rules_.max_in_flight != 0) {
      std::unique_lock held(lock_);
      leave(round, failed ? &why : nullptr);
      if (failed) next = decide(what, attempt, why, over_ || cancels_ != cancels, first_failed);
      if (next.again) mine.attempt = attempt + 1;
      pass_on(held);
    }
    if (!failed) return succeeded(what.into.size(), attempt);
    if (!next.again) std::rethrow_exception(finally(std::move(failed), attempt, next));
    wait_until(next.due, what, cancels);
  }
}

PENSTOCK_INLINE void retry_queue::note(begun_read& one) noexcept {
  one.before = newest_;
  (newest_ == nullptr ? oldest_ : newest_->next) = &one;
  newest_ = &one;
}

PENSTOCK_INLINE void retry_queue::forget(begun_read& one) noexcept {
  (one.before == nullptr ? oldest_ : one.before->next) = one.next;
  (one.next == nullptr ? newest_ : one.next->before) = one.before;
}

PENSTOCK_INLINE std::uint64_t retry_queue::enter(const read_request& what, std::uint64_t cancels) {
  if (rules_.max_in_flight == 0 && !repeats_cancel_) return 0;
  std::unique_lock held(lock_);
  room_.wait(held, [this] { return !repeats_cancel_; });
  if (rules_.max_in_flight == 0) return 0;
  ++waiting_for_room_;
  for (;;) {
    const bool paused = pauses();
    const bool waits = paused || in_flight_ >= room();
    if (cancels_ != cancels || (waits && over_)) {
      --waiting_for_room_;
      pass_on(held);
      throw_stopped(what);
    }
    if (!waits) break;
    const clock::time_point until = paused_until_;  // a copy: it may change meanwhile
    if (paused)                                     // asked once: nobody tells of the end of a pause
      room_.wait_until(held, until);
    else
      room_.wait(held);
  }
  --waiting_for_room_;
  ++in_flight_;
  return round_;
}

PENSTOCK_INLINE void retry_queue::wait_until(clock::time_point due, const read_request& what,
                                             std::uint64_t cancels) {
  std::unique_lock held(lock_);
  while (clock::now() < due) {
    if (over_ || cancels_ != cancels) throw_stopped(what);
    room_.wait_until(held, due);
  }
}

PENSTOCK_INLINE void retry_queue::throw_stopped(const read_request& what) const {
  read_request named = what;
  if (named.offset == whole_object) named.offset = 0;
  std::rethrow_exception(read_cancelled(named, names_));
}

PENSTOCK_INLINE retry_queue::decision retry_queue::decide(const read_request& what, std::uint32_t attempt,
                                                          const read_failure& why, bool cancelled,
                                                          clock::time_point& failed) noexcept {
  decision made;
  const clock::time_point now = clock::now();
  if (failed == clock::time_point{}) failed = now;
  if (why.asked_ms) slow_downs_.fetch_add(1, std::memory_order_relaxed);
  if (!why.may_pass || cancelled || rules_.attempts <= 1) return made;
  const std::uint32_t rounds = note_outage(what);
  attempt = std::max(attempt, rounds);
  made.due = now + retry_wait(rules_, what, attempt);
  if (why.asked_ms)
    made.due += std::min(rules_.max_retry_after,
                         std::chrono::milliseconds(std::min<std::uint64_t>(*why.asked_ms, 1'000'000'000)));
  // While the store is down, most reads wait for the one that asks whether it is back.
  made.late = rules_.too_late(made.due, rounds != 0 ? std::min(failed, failing_since_) : failed, why);
  if (attempt < rules_.attempts && rounds == 0 && !made.late)
    made.spent = !budget_.take(why.timed_out  ? retry_budget::for_time_out
                               : why.asked_ms ? retry_budget::if_asked
                                              : retry_budget::for_retry);
  made.again = attempt < rules_.attempts && !made.spent && !made.late;
  (made.again ? retries_ : given_up_).fetch_add(1, std::memory_order_relaxed);
  return made;
}

// How often in a row nothing could be read, if the store seems to be down. Then one read at a time asks
// whether it is back, and the others need not spend the budget.
PENSTOCK_INLINE std::uint32_t retry_queue::note_outage(const read_request& what) noexcept {
  if (rules_.max_in_flight == 0) return 0;
  if (failed_in_a_row_ == 0) failing_since_ = clock::now();
  if (++failed_in_a_row_ < max_failed_in_a_row) return 0;
  if (outage_ != 0 && in_flight_ != 0) return outage_;  // it was sent before the store seemed to be down
  if (outage_ < rules_.attempts) ++outage_;
  if (outage_ < rules_.attempts) {
    paused_until_ = std::max(paused_until_, clock::now() + retry_wait(rules_, what, outage_));
    changed_.notify_all();
  }
  return outage_;
}

PENSTOCK_INLINE void retry_queue::leave(std::uint64_t round, const read_failure* why) noexcept {
  if (rules_.max_in_flight == 0) return;
  --in_flight_;
  if (why == nullptr || !why->may_pass) failed_in_a_row_ = outage_ = 0;  // that it is not there is an answer
  if (why == nullptr) {
    if (round == round_ && limit_ < rules_.max_in_flight && ++grown_ >= limit_) {
      ++limit_;
      grown_ = 0;
    }
  } else if (why->asked_ms) {
    if (round == round_) {  // the others of this round were sent before the limit was halved
      limit_ = std::max<std::size_t>(1, limit_ / 2);
      grown_ = 0;
      ++round_;
      throttled_.fetch_add(1, std::memory_order_relaxed);
    }
    const auto asked = std::chrono::milliseconds(std::min<std::uint64_t>(*why->asked_ms, 1'000'000'000));
    if (asked.count() != 0) {
      paused_until_ = std::max(paused_until_, clock::now() + std::min(asked, rules_.max_pause));
      changed_.notify_all();  // the retry_queue's thread watches the end of the pause
    }
  }
  if (waiting_for_room_ != 0) room_.notify_all();
}

PENSTOCK_INLINE bool retry_queue::pauses() noexcept {
  if (paused_until_ == clock::time_point{}) return false;
  if (clock::now() < paused_until_) return true;
  paused_until_ = {};
  return false;
}

// A thread that waits in a blocking read needs its bytes now: it comes first.
PENSTOCK_INLINE bool retry_queue::has_room() noexcept {
  return rules_.max_in_flight == 0 || over_ || (!pauses() && in_flight_ + waiting_for_room_ < room());
}

PENSTOCK_INLINE retry_queue::item& retry_queue::make_item() {
  if (free_.first == nullptr) {
    timed_.reserve(made_ + max_per_call);
    items_.reserve(items_.size() + 1);
    auto more = std::make_unique<item[]>(max_per_call);
    for (std::size_t i = 0; i < max_per_call; ++i) free_.append(more[i]);
    items_.push_back(std::move(more));
    made_ += max_per_call;
  }
  return *free_.pop();
}

PENSTOCK_INLINE void retry_queue::read_many(std::span<const read_request> requests,
                                            read_listener listener) noexcept {
  std::size_t taken = 0;
  std::exception_ptr failed;
  const clock::time_point now = clock::now();
  {
    std::unique_lock held(lock_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
      for (; taken < requests.size(); ++taken) {
        item& one = make_item();
        one.what = {requests[taken], listener};
        one.cancels = cancels_;
        one.begun = {&one.what.request, now};
        note(one.begun);
        one.failed = {};
        ready_.append(one);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    pass_on(held);
    if (ready_.first != nullptr) changed_.notify_all();  // perhaps it waits for the end of a pause
  }
  for (const read_request& request : requests.subspan(taken))
    listener.done(listener.self, request.tag, failed);
}

PENSTOCK_INLINE std::size_t retry_queue::take_ready(std::span<read_request> into) noexcept {
  std::size_t count = 0;
  while (count < into.size() && ready_.first != nullptr && has_room()) {
    item& one = *ready_.pop();
    if (rules_.max_in_flight != 0) ++in_flight_;
    one.round = round_;
    into[count] = one.what.request;
    into[count++].tag = reinterpret_cast<std::uintptr_t>(&one);
  }
  requests_.fetch_add(count, std::memory_order_relaxed);
  return count;
}

// The lock is released while reads are passed on.
PENSTOCK_INLINE void retry_queue::pass_on(std::unique_lock<std::mutex>& held) noexcept {
  if (passing_ || ready_.first == nullptr) return;
  passing_ = true;
  std::array<read_request, max_per_call> together;
  const read_listener listener{this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                                 static_cast<retry_queue*>(self)->ended(
                                     *reinterpret_cast<item*>(to_size(tag)), std::move(failed));
                               }};
  while (const std::size_t count = take_ready(together)) {
    held.unlock();
    background_.read_many({together.data(), count}, listener);
    held.lock();
    if (!repeats_cancel_) continue;
    held.unlock();  // the cancellation may have come before these reads
    background_.cancel();
    held.lock();
    repeats_cancel_ = false;
    room_.notify_all();
  }
  passing_ = false;
  if (ends_) changed_.notify_all();
}

PENSTOCK_INLINE void retry_queue::ended(item& one, std::exception_ptr failed) noexcept {
  const read_failure why = failed ? read_failure::of(failed) : read_failure{};
  if (!failed) succeeded(one.what.request.into.size(), one.begun.attempt);
  std::unique_lock held(lock_);
  leave(one.round, failed ? &why : nullptr);
  decision next;
  if (failed)
    next = decide(one.what.request, one.begun.attempt, why, over_ || one.cancels != cancels_, one.failed);
  if (next.again) {
    ++one.begun.attempt;
    one.due = next.due;
    timed_.push_back(&one);
    std::push_heap(timed_.begin(), timed_.end(),
                   [](const item* a, const item* b) { return a->due > b->due; });
    changed_.notify_all();
    return pass_on(held);
  }
  const waiting_read what = one.what;
  const std::uint32_t attempts = one.begun.attempt;
  forget(one.begun);
  free_.append(one);
  pass_on(held);
  held.unlock();
  if (failed) failed = finally(std::move(failed), attempts, next);
  what.tell(std::move(failed));
}

PENSTOCK_INLINE void retry_queue::succeeded(std::size_t bytes, std::uint32_t attempt) noexcept {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (rules_.attempts > 1) budget_.give(attempt > 1 ? retry_budget::for_retry : 1);
}

PENSTOCK_INLINE std::exception_ptr retry_queue::finally(std::exception_ptr failed, std::uint32_t attempts,
                                                        const decision& last) noexcept {
  if (attempts == 1 && !last.spent && !last.late) return failed;
  try {
    std::rethrow_exception(failed);
  } catch (const error& e) {
    try {
      error more = e;
      more.say_more(attempts_text(attempts, last.spent, last.late));
      return std::make_exception_ptr(more);
    } catch (...) {  // no memory for the sentence
      return failed;
    }
  } catch (...) {
    return failed;
  }
}

PENSTOCK_INLINE void retry_queue::cancel() noexcept {
  {
    const std::lock_guard guard(lock_);
    ++cancels_;
    repeats_cancel_ = passing_;
    while (item* const one = ready_.pop()) stopped_.append(*one);
    for (item* const one : timed_) stopped_.append(*one);
    timed_.clear();
  }
  changed_.notify_all();
  room_.notify_all();
  if (background_) background_.cancel();
}

PENSTOCK_INLINE void retry_queue::stop() noexcept {
  cancel();
  {
    std::unique_lock held(lock_);
    ends_ = true;
    changed_.notify_all();
    changed_.wait(held, [this] { return !passing_; });
  }
  if (thread_.joinable()) thread_.join();
}

PENSTOCK_INLINE void retry_queue::work() noexcept {
  const auto later = [](const item* a, const item* b) { return a->due > b->due; };
  std::unique_lock held(lock_);
  for (;;) {
    while (item* const one = stopped_.pop()) {
      const waiting_read what = one->what;
      forget(one->begun);
      free_.append(*one);
      held.unlock();
      what.tell(read_cancelled(what.request, names_));
      held.lock();
    }
    if (ends_) return;
    for (const auto now = clock::now(); !timed_.empty() && timed_.front()->due <= now;) {
      std::pop_heap(timed_.begin(), timed_.end(), later);
      ready_.append(*timed_.back());
      timed_.pop_back();
    }
    pass_on(held);
    if (stopped_.first != nullptr || ends_) continue;
    auto wake = timed_.empty() ? clock::time_point::max() : timed_.front()->due;
    if (ready_.first != nullptr && paused_until_ != clock::time_point{}) {
      if (!pauses()) continue;  // it ended since `pass_on` looked
      wake = std::min(wake, paused_until_);
    }
    if (wake == clock::time_point::max())
      changed_.wait(held);
    else if (clock::now() < wake)
      changed_.wait_until(held, wake);
  }
}

PENSTOCK_INLINE session_report retry_queue::report() const {
  const auto of = [](const counter& one) { return one.load(std::memory_order_relaxed); };
  session_report all;
  all.counters.requests = of(requests_);
  all.counters.bytes = of(bytes_);
  all.counters.slow_downs = of(slow_downs_);
  all.counters.retries = of(retries_);
  all.counters.given_up = of(given_up_);
  all.counters.throttled = of(throttled_);
  all.counted = true;
  all.names = names_;
  const std::lock_guard guard(lock_);
  all.max_in_flight = limit_;
  if (oldest_ != nullptr) {
    const read_request& what = *oldest_->what;
    all.oldest = {what.object,
                  what.offset == whole_object ? 0 : what.offset,
                  oldest_->attempt,
                  static_cast<std::uint64_t>((clock::now() - oldest_->begun).count()),
                  {}};
  }
  return all;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
