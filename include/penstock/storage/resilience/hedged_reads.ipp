// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/resilience/hedged_reads.hpp>

#include <penstock/core/to_size.hpp>
#include <penstock/storage/reads/part_reads.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void hedged_reads::link_list::append(link& one) noexcept {
  one.next = nullptr;
  (first == nullptr ? first : last->next) = &one;
  last = &one;
}
PENSTOCK_INLINE hedged_reads::link* hedged_reads::link_list::pop() noexcept {
  link* const one = first;
  if (one != nullptr) first = one->next;
  return one;
}

PENSTOCK_INLINE hedged_reads::hedged_reads(const hedge_rules& rules, std::span<const std::string> names)
    : min_delay_(rules.min_delay),
      for_each_read_(static_cast<std::int64_t>(rules.max_extra_requests * static_cast<double>(one_hedge))),
      max_bytes_(rules.bytes),
      names_(names) {
  for (size_group& one : groups_) one.times.need(rules.observations);
}

PENSTOCK_INLINE void hedged_reads::use(session_view session, background_view background) noexcept {
  session_ = session;
  background_ = background;
}

// What asks the session directly must not be ended by a cancellation that came before.
PENSTOCK_INLINE void hedged_reads::await_cancel() {
  std::unique_lock held(lock_);
  changed_.wait(held, [this] { return !repeats_cancel_; });
}

PENSTOCK_INLINE std::uint64_t hedged_reads::size(object_id id) {
  await_cancel();
  return session_->size(id);
}
PENSTOCK_INLINE object_version hedged_reads::version(object_id id) {
  await_cancel();
  return session_->version(id);
}
PENSTOCK_INLINE void hedged_reads::read(object_id id, std::uint64_t offset, mutable_bytes into) {
  read_by_parts(*this, id, offset, into);
}

PENSTOCK_INLINE hedged_reads::item& hedged_reads::make_item(std::size_t bytes) {
  if (free_ == nullptr) {
    items_.reserve(items_.size() + 1);
    auto fresh = std::make_unique<item>();
    fresh->first = {fresh.get(), nullptr, false};
    fresh->second = {fresh.get(), nullptr, true};
    free_ = fresh.get();
    items_.push_back(std::move(fresh));
  }
  item& one = *free_;
  one.buffered = !background_.abandons() && bytes <= max_bytes_ - held_;
  if (one.buffered) {
    one.first_bytes.resize_for_overwrite(bytes);
    held_ += bytes;
  }
  free_ = one.newer;
  one.newer = nullptr;
  return one;
}

PENSTOCK_INLINE void hedged_reads::list(item& one) noexcept {
  size_group& in = groups_[one.group];
  one.listed = true;
  one.newer = nullptr;
  one.older = in.newest;
  (in.newest == nullptr ? in.oldest : in.newest->newer) = &one;
  in.newest = &one;
  if (in.oldest == &one) changed_.notify_all();  // the thread watches the oldest of each group
}

PENSTOCK_INLINE void hedged_reads::unlist(item& one) noexcept {
  if (!std::exchange(one.listed, false)) return;
  size_group& in = groups_[one.group];
  (one.older == nullptr ? in.oldest : one.older->newer) = one.newer;
  (one.newer == nullptr ? in.newest : one.newer->older) = one.older;
  one.older = one.newer = nullptr;
}

// Releases an item once both reads have ended and no thread uses it. `unused` gets what need not be kept, so
// that it can be given back without the lock.
PENSTOCK_INLINE void hedged_reads::unpin(item& one, buffers& unused) noexcept {
  --one.pins;
  if (one.pins != 0 || one.first_runs || one.second_runs) return;
  held_ -= one.second_bytes.size() + (one.buffered ? one.first_bytes.size() : 0);
  unused[0] = std::move(one.second_bytes);
  if (one.first_bytes.capacity() > max_kept) unused[1] = std::move(one.first_bytes);
  one.failed = nullptr;
  one.newer = free_;
  free_ = &one;
}

PENSTOCK_INLINE void hedged_reads::read_many(std::span<const read_request> requests,
                                             read_listener listener) noexcept {
  std::size_t taken = 0;
  std::exception_ptr failed;
  {
    std::unique_lock held(lock_);
    try {
      if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
      for (; taken < requests.size(); ++taken) {
        item& one = make_item(requests[taken].into.size());
        one.what = {requests[taken], listener};
        one.cancels = cancels_;
        one.group = std::min(groups - 1, to_size(std::bit_width(requests[taken].into.size())) / 2);
        one.first_runs = true;
        one.second_good = one.told = false;
        ready_.append(one.first);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    pass_on(held);
  }
  for (const read_request& request : requests.subspan(taken))
    listener.done(listener.self, request.tag, failed);
}

PENSTOCK_INLINE std::size_t hedged_reads::take_ready(std::span<read_request> into) noexcept {
  std::size_t count = 0;
  const clock::time_point now = clock::now();
  while (count < into.size() && ready_.first != nullptr) {
    link& which = *ready_.pop();
    item& one = *which.of;
    read_request& request = into[count++];
    request = one.what.request;
    request.tag = reinterpret_cast<std::uintptr_t>(&which);
    if (which.second) {
      request.into = one.second_bytes.span();
      continue;
    }
    if (one.buffered) request.into = one.first_bytes.span();
    one.begun = now;
    if (one.buffered || background_.abandons()) list(one);
    saved_ = std::min(max_saved, saved_ + for_each_read_);
  }
  requests_.fetch_add(count, std::memory_order_relaxed);
  return count;
}

// The lock is released while reads are passed on.
PENSTOCK_INLINE void hedged_reads::pass_on(std::unique_lock<std::mutex>& held) noexcept {
  if (passing_ || ready_.first == nullptr) return;
  passing_ = true;
  std::array<read_request, max_per_call> together;
  const read_listener listener{this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                                 static_cast<hedged_reads*>(self)->ended(
                                     *reinterpret_cast<link*>(to_size(tag)), std::move(failed));
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
    changed_.notify_all();
  }
  passing_ = false;
  if (ends_) changed_.notify_all();
}

PENSTOCK_INLINE void hedged_reads::ended(link& which, std::exception_ptr failed) noexcept {
  item& one = *which.of;
  const bool direct = background_.abandons();
  const link* loser = nullptr;
  const buffer* from = nullptr;
  std::exception_ptr report;
  bool tell = false, won = false;
  buffers unused;
  std::unique_lock held(lock_);
  ++one.pins;
  (which.second ? one.second_runs : one.first_runs) = false;
  if (!which.second) unlist(one);
  if (one.told) {
    // the other one was first
  } else if (which.second) {
    if (failed) {
      tell = !one.first_runs;
      report = one.failed;
    } else if (direct && one.first_runs) {  // it may still write to where the bytes shall go
      one.second_good = true;
      loser = &one.first;
    } else {
      tell = won = true;
    }
  } else if (!failed) {
    tell = true;
    if (one.buffered) from = &one.first_bytes;
    if (direct && one.second_runs) loser = &one.second;
  } else if (one.second_good) {
    tell = won = true;
  } else if (one.second_runs) {
    one.failed = std::move(failed);
  } else {
    tell = true;
    report = std::move(failed);
  }
  if (won) from = &one.second_bytes;
  if (tell) {
    one.told = true;
    unlist(one);
    if (!report && groups_[one.group].times.add(clock::now() - one.begun)) changed_.notify_all();
  }
  held.unlock();
  if (loser != nullptr) background_.abandon(reinterpret_cast<std::uintptr_t>(loser));
  if (tell) {
    const mutable_bytes into = one.what.request.into;
    if (from != nullptr && !into.empty()) std::memcpy(into.data(), from->data(), into.size());
    if (!report) bytes_.fetch_add(into.size(), std::memory_order_relaxed);
    if (won) hedges_won_.fetch_add(1, std::memory_order_relaxed);
    one.what.tell(std::move(report));
  }
  held.lock();
  unpin(one, unused);
}

PENSTOCK_INLINE void hedged_reads::cancel() noexcept {
  {
    const std::lock_guard guard(lock_);
    ++cancels_;
    repeats_cancel_ = passing_;
    while (link* const which = ready_.pop()) stopped_.append(*which);
  }
  changed_.notify_all();
  background_.cancel();
}

PENSTOCK_INLINE void hedged_reads::stop() noexcept {
  cancel();
  {
    std::unique_lock held(lock_);
    ends_ = true;
    changed_.notify_all();
    changed_.wait(held, [this] { return !passing_; });
  }
  if (thread_.joinable()) thread_.join();
}

PENSTOCK_INLINE hedged_reads::clock::time_point hedged_reads::hedge_late(clock::time_point now) noexcept {
  clock::time_point wake = clock::time_point::max();
  for (size_group& in : groups_) {
    const auto late = in.times.late();
    if (in.oldest == nullptr || !late) continue;
    const clock::duration after = std::max(*late, min_delay_);
    while (in.oldest != nullptr && in.oldest->begun + after <= now && saved_ >= one_hedge) {
      item& one = *in.oldest;
      unlist(one);
      if (one.cancels != cancels_) continue;
      const std::size_t size = one.what.request.into.size();
      try {
        if (size > max_bytes_ - held_) continue;  // the first read has to do
        one.second_bytes.resize_for_overwrite(size);
      } catch (...) {  // no memory
        continue;
      }
      held_ += size;
      saved_ -= one_hedge;
      one.second_runs = true;
      hedges_.fetch_add(1, std::memory_order_relaxed);
      ready_.append(one.second);
    }
    if (in.oldest == nullptr) continue;
    const clock::duration soon = std::chrono::milliseconds(1);  // until more may be started
    wake = std::min(wake, std::max(in.oldest->begun + after, now + (saved_ < one_hedge ? soon : soon * 0)));
  }
  return wake;
}

PENSTOCK_INLINE void hedged_reads::work() noexcept {
  std::unique_lock held(lock_);
  for (;;) {
    while (link* const which = stopped_.pop()) {
      const read_request request = which->of->what.request;
      held.unlock();
      ended(*which, read_cancelled(request, names_));
      held.lock();
    }
    if (ends_) return;
    const clock::time_point wake = hedge_late(clock::now());
    if (ready_.first != nullptr && !passing_) {
      pass_on(held);
      continue;
    }
    if (wake == clock::time_point::max())
      changed_.wait(held);
    else
      changed_.wait_until(held, wake);
  }
}

PENSTOCK_INLINE session_report hedged_reads::report() const noexcept {
  const auto of = [](const counter& one) { return one.load(std::memory_order_relaxed); };
  session_report all;
  all.counters.requests = of(requests_);
  all.counters.bytes = of(bytes_);
  all.counters.hedges = of(hedges_);
  all.counters.hedges_won = of(hedges_won_);
  all.counters.held = of(held_);
  all.counted = true;
  all.names = names_;
  return all;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
