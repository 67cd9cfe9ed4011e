// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/size_requests.hpp>

#include <penstock/storage/concepts.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE size_requests::~size_requests() {
  stop();
  if (thread_.joinable()) thread_.join();
}

PENSTOCK_INLINE void size_requests::ask_from(std::size_t object) {
  {
    const std::lock_guard guard(lock_);
    if (stopped_ || object >= objects_) return;
    if (object < from_ || object > next_) next_ = object;  // it has moved elsewhere
    from_ = object;
    end_ = std::min(objects_, object + ahead);
    if (next_ == end_) return;
    if (!thread_.joinable()) thread_ = std::thread([this]() noexcept { work(); });
  }
  changed_.notify_one();
}

PENSTOCK_INLINE size_requests::answer_type size_requests::answer(std::size_t object) {
  const std::lock_guard guard(lock_);
  const place& there = places_[object % ahead];
  return there.object == object ? there.answer : answer_type{};
}

PENSTOCK_INLINE void size_requests::forget() noexcept {
  const std::lock_guard guard(lock_);
  places_ = {};
  from_ = next_ = end_ = 0;
  ++times_forgotten_;
}

PENSTOCK_INLINE void size_requests::stop() noexcept {
  {
    const std::lock_guard guard(lock_);
    stopped_ = true;
  }
  changed_.notify_one();
}

PENSTOCK_INLINE void size_requests::work() noexcept {
  std::unique_lock held(lock_);
  for (;;) {
    changed_.wait(held, [this] { return stopped_ || next_ < end_; });
    if (stopped_) return;
    const std::size_t object = next_++;
    const std::uint64_t before = times_forgotten_;
    held.unlock();
    answer_type found{state::failed, 0};
    try {
      found = {state::known, session_.size(static_cast<object_id>(object))};
    } catch (...) {  // who reads the object asks again, and gets the error
    }
    held.lock();
    if (before == times_forgotten_) places_[object % ahead] = {object, found};
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1
