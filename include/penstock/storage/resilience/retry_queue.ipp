// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/retry_queue.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/reads/part_reads.hpp>

#include <cstring>

namespace penstock::inline v0_1::detail {

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

PENSTOCK_INLINE retry_queue::retry_queue(const retry_policy& policy, std::span<const std::string> names)
    : retries_(policy),
      names_(names),
      late_(policy.hedges ? new late_reads(*policy.hedges) : nullptr),
      limit_(policy.max_in_flight) {}

PENSTOCK_INLINE std::uint64_t retry_queue::size(object_id id) {
  std::uint64_t found = 0;
  insist({id, whole_object, {}}, [&] { found = session_->size(id); });
  return found;
}
PENSTOCK_INLINE object_version retry_queue::version(object_id id) {
  object_version found;
  insist({id, whole_object, {}}, [&] { found = session_->version(id); });
  return found;
}
inline request_recorder::outcome outcome_of(bool failed, const read_failure& why) noexcept {
  return !failed       ? &request_recorder::answered
         : why.stopped ? &request_recorder::cancelled
                       : &request_recorder::failed;
}

PENSTOCK_INLINE void retry_queue::read(object_id id, std::uint64_t offset, mutable_bytes into) {
  if (session_->in_background() && (hedges() || into.size() > part_reads::longest)) {
    urgent line{*this};
    return read_by_parts(line, id, offset, into);
  }
  insist({id, offset, into}, [&] { session_->read(id, offset, into); });
}

PENSTOCK_INLINE void retry_queue::insist(const read_request& what, void (*ask)(void* self), void* self) {
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
    const bool counts = what.offset != whole_object;
    if (counts) requests_.fetch_add(1, std::memory_order_relaxed);
    const clock::time_point sent = clock::now();
    std::exception_ptr failed = thrown_by([&] { ask(self); });
    const read_failure why = failed ? read_failure::of(failed) : read_failure{};
    if (counts) recorded_.ended(sent, clock::now(), outcome_of(failed != nullptr, why));
    retry_decision next;
    bool cancelled = false;
    if (failed || policy_.max_in_flight != 0) {
      std::unique_lock held(lock_);
      leave(round, failed ? &why : nullptr);
      cancelled = cancels_ != cancels;
      if (failed) next = decide(what, attempt, why, over_ || cancelled, first_failed);
      if (next.again) mine.attempt = attempt + 1;
      pass_on(held);
    }
    if (!failed) return succeeded(what.into.size(), attempt);
    // It would have been tried again, as those are that wait by now.
    if (cancelled && why.may_pass && policy_.attempts > 1) throw_stopped(what);
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
  if (policy_.stop.stop_requested()) throw_stopped(what);
  if (policy_.max_in_flight == 0 && !repeats_cancel_) return 0;
  std::unique_lock held(lock_);
  room_.wait(held, [this] { return !repeats_cancel_; });
  if (policy_.max_in_flight == 0) return 0;
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

PENSTOCK_INLINE retry_decision retry_queue::decide(const read_request& what, std::uint32_t attempt,
                                                   const read_failure& why, bool cancelled,
                                                   clock::time_point& failed) noexcept {
  if (failed == clock::time_point{}) failed = clock::now();
  if (why.asked_ms) slow_downs_.fetch_add(1, std::memory_order_relaxed);
  if (!why.may_pass || cancelled || policy_.attempts <= 1) return {};
  const std::uint32_t rounds = note_outage(what);
  // While the store is down, most reads wait for the one that asks whether it is back.
  const clock::time_point since = rounds != 0 ? std::min(failed, failing_since_) : failed;
  const retry_decision made = retries_.after(what, std::max(attempt, rounds), why, since, rounds == 0);
  (made.again ? retried_ : given_up_).fetch_add(1, std::memory_order_relaxed);
  return made;
}

// How often in a row nothing could be read, if the store seems to be down. Then one read at a time asks
// whether it is back, and the others need not spend the budget.
PENSTOCK_INLINE std::uint32_t retry_queue::note_outage(const read_request& what) noexcept {
  if (policy_.max_in_flight == 0) return 0;
  if (failed_in_a_row_ == 0) failing_since_ = clock::now();
  if (++failed_in_a_row_ < max_failed_in_a_row) return 0;
  if (outage_ != 0 && in_flight_ != 0) return outage_;  // it was sent before the store seemed to be down
  if (outage_ < policy_.attempts) ++outage_;
  if (outage_ < policy_.attempts) {
    paused_until_ = std::max(paused_until_, clock::now() + retry_wait(policy_, what, outage_));
    changed_.notify_all();
  }
  return outage_;
}

PENSTOCK_INLINE void retry_queue::leave(std::uint64_t round, const read_failure* why) noexcept {
  if (policy_.max_in_flight == 0) return;
  --in_flight_;
  if (why == nullptr || !why->may_pass) failed_in_a_row_ = outage_ = 0;  // that it is not there is an answer
  if (why == nullptr) {
    if (round == round_ && limit_ < policy_.max_in_flight && ++grown_ >= limit_) {
      ++limit_;
      grown_ = 0;
    }
  } else if (why->asked_ms) {
    if (round == round_) {  // the others of this round were sent before the limit was halved
      limit_ = std::max<std::size_t>(1, limit_.load() / 2);
      grown_ = 0;
      ++round_;
      throttled_.fetch_add(1, std::memory_order_relaxed);
    }
    if (*why->asked_ms != 0) {
      paused_until_ = std::max(paused_until_, clock::now() + why->asked(policy_.max_pause));
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
  return policy_.max_in_flight == 0 || over_ || (!pauses() && in_flight_ + waiting_for_room_ < room());
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

PENSTOCK_INLINE void retry_queue::begin(std::span<const read_request> requests, read_listener listener,
                                        item_list& among) noexcept {
  std::size_t taken = 0;
  std::exception_ptr failed;
  const clock::time_point now = clock::now();
  if (policy_.stop.stop_requested()) {
    for (const read_request& request : requests)
      listener.done(listener.self, request.tag, read_cancelled(request, names_));
    return;
  }
  {
    std::unique_lock held(lock_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
      for (; taken < requests.size(); ++taken) {
        item& one = make_item();
        one.what = {requests[taken], listener};
        one.cancels = cancels_;
        one.known = {&one.what.request, now};
        note(one.known);
        one.first_failed = {};
        one.told = false;
        one.among = &among;
        among.append(one);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    pass_on(held);
    if (waits_for_room()) changed_.notify_all();  // perhaps it waits for the end of a pause
  }
  for (const read_request& request : requests.subspan(taken))
    listener.done(listener.self, request.tag, failed);
}

PENSTOCK_INLINE bool retry_queue::hold(buffer& bytes, std::size_t size) noexcept {
  if (size > policy_.hedges->bytes - held_) return false;
  try {
    bytes.resize_for_overwrite(size);
  } catch (...) {  // no memory
    return false;
  }
  held_ += size;
  return true;
}

PENSTOCK_INLINE void retry_queue::drop_buffers(item& one, buffers& unused) noexcept {
  held_ -= one.second_bytes.size();
  if (std::exchange(one.buffered, false)) held_ -= one.first_bytes.size();
  unused[0] = std::move(one.second_bytes);
  if (one.first_bytes.capacity() > max_kept) unused[1] = std::move(one.first_bytes);
}

PENSTOCK_INLINE void retry_queue::release(item& one, buffers& unused) noexcept {
  if (!one.told || one.first.runs || one.second.runs || one.pins != 0) return;
  drop_buffers(one, unused);
  one.failed = nullptr;
  free_.append(one);
}

PENSTOCK_INLINE std::size_t retry_queue::take_ready(std::span<read_request> into) noexcept {
  std::size_t count = std::exchange(looks_for_late_, false) ? take_late(into) : 0;
  const clock::time_point now = clock::now();
  while (count < into.size() && waits_for_room() && has_room()) {
    item& one = *(urgent_.first != nullptr ? urgent_ : ready_).pop();
    if (policy_.max_in_flight != 0) ++in_flight_;
    one.round = round_;
    one.first.runs = true;
    one.first.sent = now;
    one.second_good = false;
    read_request& request = into[count++];
    request = one.what.request;
    request.tag = reinterpret_cast<std::uintptr_t>(&one.first);
    if (!hedges()) continue;
    one.buffered = !session_->abandons() && hold(one.first_bytes, request.into.size());
    if (one.buffered) request.into = one.first_bytes.span();
    if (late_->begun(one, request.into.size(), now, one.buffered || session_->abandons()))
      changed_.notify_all();  // the thread watches the oldest of each size
  }
  requests_.fetch_add(count, std::memory_order_relaxed);
  return count;
}

PENSTOCK_INLINE std::size_t retry_queue::take_late(std::span<read_request> into) noexcept {
  const clock::time_point now = clock::now();
  std::size_t count = 0;
  while (count < into.size()) {
    item* const one = static_cast<item*>(late_->take(now));
    if (one == nullptr) return count;
    const read_request& what = one->what.request;
    if (one->cancels != cancels_ || !hold(one->second_bytes, what.into.size())) continue;
    late_->spend();
    hedges_.fetch_add(1, std::memory_order_relaxed);
    one->second.runs = true;
    one->second.sent = now;
    into[count++] = {what.object, what.offset, one->second_bytes.span(),
                     reinterpret_cast<std::uintptr_t>(&one->second)};
  }
  looks_for_late_ = true;  // there may be more
  return count;
}

// The lock is released while reads are passed on.
PENSTOCK_INLINE void retry_queue::pass_on(std::unique_lock<std::mutex>& held) noexcept {
  if (passing_ || !(waits_for_room() || looks_for_late_)) return;
  passing_ = true;
  std::array<read_request, max_per_call> together;
  const read_listener listener{this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                                 static_cast<retry_queue*>(self)->ended(
                                     *reinterpret_cast<link*>(to_size(tag)), std::move(failed));
                               }};
  while (const std::size_t count = take_ready(together)) {
    held.unlock();
    session_->read_many({together.data(), count}, listener);
    held.lock();
    if (!repeats_cancel_) continue;
    held.unlock();  // the cancellation may have come before these reads
    session_->cancel();
    held.lock();
    repeats_cancel_ = false;
    room_.notify_all();
  }
  passing_ = false;
  if (ends_) changed_.notify_all();
}

PENSTOCK_INLINE void retry_queue::ended(link& which, std::exception_ptr failed) noexcept {
  item& one = *which.of;
  const bool second = &which == &one.second, abandons = session_->abandons();
  read_failure why = failed ? read_failure::of(failed) : read_failure{};
  bool won = second && !failed;  // the bytes are those of the second read
  buffers unused;
  recorded_.ended(which.sent, clock::now(), outcome_of(failed != nullptr, why));
  std::unique_lock held(lock_);
  which.runs = false;
  const link& other = second ? one.first : one.second;
  if (!second && hedges()) late_->leave(one);
  if (one.told) return release(one, unused);  // the other one was first
  const auto abandon = [&](const link& loser) {
    ++one.pins;
    held.unlock();
    session_->abandon(reinterpret_cast<std::uintptr_t>(&loser));
    held.lock();
    --one.pins;
  };
  if (won && other.runs && abandons) {  // it may still write to where the bytes shall go
    one.second_good = true;
    abandon(other);
    return release(one, unused);
  }
  if (failed && other.runs) {  // which counts now
    if (!second) one.failed = std::move(failed);
    return;
  }
  if (failed && one.second_good) {
    failed = nullptr;
    won = true;
  } else if (failed && second) {
    failed = std::exchange(one.failed, nullptr);
    why = read_failure::of(failed);
  }
  leave(one.round, failed ? &why : nullptr);
  retry_decision next;
  if (failed)
    next =
        decide(one.what.request, one.known.attempt, why, over_ || one.cancels != cancels_, one.first_failed);
  if (next.again) {
    ++one.known.attempt;
    one.due = next.due;
    drop_buffers(one, unused);
    timed_.push_back(&one);
    std::push_heap(timed_.begin(), timed_.end(),
                   [](const item* a, const item* b) { return a->due > b->due; });
    changed_.notify_all();
    return pass_on(held);
  }
  one.told = true;
  const waiting_read what = one.what;
  const std::uint32_t attempts = one.known.attempt;
  forget(one.known);
  if (!failed) {
    if (hedges() && late_->succeeded(one)) changed_.notify_all();
    if (other.runs && abandons) abandon(other);
    if (won || one.buffered) {
      ++one.pins;
      held.unlock();
      const bytes_view from = won ? one.second_bytes.view() : one.first_bytes.view();
      if (!from.empty()) std::memcpy(what.request.into.data(), from.data(), from.size());
      held.lock();
      --one.pins;
    }
    if (won) hedges_won_.fetch_add(1, std::memory_order_relaxed);
    succeeded(what.request.into.size(), attempts);
  }
  release(one, unused);
  pass_on(held);
  held.unlock();
  if (failed) failed = finally(std::move(failed), attempts, next);
  what.tell(std::move(failed));
}

PENSTOCK_INLINE void retry_queue::succeeded(std::size_t bytes, std::uint32_t attempt) noexcept {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  retries_.succeeded(attempt);
}

PENSTOCK_INLINE std::exception_ptr retry_queue::finally(std::exception_ptr failed, std::uint32_t attempts,
                                                        const retry_decision& last) noexcept {
  if (attempts == 1 && !last.spent && !last.late) return failed;
  try {
    std::rethrow_exception(failed);
  } catch (const error& e) {
    try {
      error more = e;
      last.explain(more, attempts);
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
    while (item* const one = urgent_.pop()) stopped_.append(*one);
    while (item* const one = ready_.pop()) stopped_.append(*one);
    for (item* const one : timed_) stopped_.append(*one);
    timed_.clear();
  }
  changed_.notify_all();
  room_.notify_all();
  if (session_) session_->cancel();
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
      forget(one->known);
      free_.append(*one);
      held.unlock();
      what.tell(read_cancelled(what.request, names_));
      held.lock();
    }
    if (ends_) return;
    for (const auto now = clock::now(); !timed_.empty() && timed_.front()->due <= now;) {
      std::pop_heap(timed_.begin(), timed_.end(), later);
      timed_.back()->among->append(*timed_.back());
      timed_.pop_back();
    }
    pass_on(held);
    if (stopped_.first != nullptr || ends_) continue;
    auto wake = timed_.empty() ? clock::time_point::max() : timed_.front()->due;
    if (hedges()) {
      const clock::time_point now = clock::now(), late_at = late_->wake(now);
      looks_for_late_ = late_at <= now && !passing_;
      if (looks_for_late_) continue;
      wake = std::min(wake, passing_ ? std::max(late_at, now + std::chrono::milliseconds(1)) : late_at);
    }
    if (waits_for_room() && paused_until_ != clock::time_point{}) {
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
  all.counters.retries = of(retried_);
  all.counters.given_up = of(given_up_);
  all.counters.throttled = of(throttled_);
  all.counters.hedges = of(hedges_);
  all.counters.hedges_won = of(hedges_won_);
  all.requests = recorded_.read();
  all.counted = true;
  all.names = names_;
  const std::lock_guard guard(lock_);
  all.counters.held = held_;
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

}  // namespace penstock::inline v0_1::detail
