// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/forward_pieces.hpp>

#include <algorithm>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE size_requests::size_requests(session_view session, std::size_t objects) noexcept
    : session_(session), objects_(objects) {}

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

PENSTOCK_INLINE void forward_pieces::open(std::size_t object) {
  bool follows = open_ && object == object_ + 1;
  const auto known = follows && sizes_ ? sizes_->answer(object) : size_requests::answer_type{};
  const std::uint64_t size =
      known.is == size_requests::state::known ? known.size : session_.size(static_cast<object_id>(object));
  while (follows && count_ != 0 && at(0).object < object) drop_first();
  if (follows && count_ == 0 && next_object_ < object) {  // all that was asked for has been read
    next_object_ = object;
    next_offset_ = 0;
    next_size_ = size;
  }
  if (follows && size != 0) {
    follows = count_ != 0 ? at(0).object == object && at(0).offset == 0
                          : next_object_ == object && next_offset_ == 0;
  }
  if (!follows) restart(object);
  stuck_ = false;
  open_ = true;
  object_ = object;
  left_ = size;
  if (!follows) next_size_ = size;
  if (sizes_) (void)size_ahead(next_object_ + 1);  // early: the answer is needed when this object ends
}

PENSTOCK_INLINE void forward_pieces::end() noexcept {
  {
    const std::scoped_lock held(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (sizes_) sizes_->stop();
  session_.end_reads();
}

PENSTOCK_INLINE void forward_pieces::wait_for_all() {
  std::unique_lock held(mutex_);
  changed_.wait(held, [&] {
    return std::none_of(slots_.begin(), slots_.end(), [](const slot& one) { return one.in_flight; });
  });
}

PENSTOCK_INLINE void forward_pieces::drop_first() {
  wait_for(at(0));
  at(0).failed = nullptr;
  first_ = (first_ + 1) % slots_.size();
  --count_;
  used_ = false;
}

PENSTOCK_INLINE void forward_pieces::restart(std::size_t object) {
  if (count_ != 0 && session_.in_background()) {
    session_.cancel();
    wait_for_all();
  }
  if (sizes_) sizes_->forget();
  for (slot& one : slots_) one.failed = nullptr;
  first_ = count_ = 0;
  used_ = open_ = false;
  next_object_ = object;
  next_offset_ = next_size_ = 0;
}

PENSTOCK_INLINE void forward_pieces::read_ahead() {
  do {
    requests_.clear();
    for (; count_ < slots_.size() && next_offset_ < next_size_; ++count_) {
      slot& one = at(count_);
      one.object = next_object_;
      one.offset = next_offset_;
      one.bytes.resize_for_overwrite(to_size(std::min<std::uint64_t>(piece, next_size_ - next_offset_)));
      next_offset_ += one.bytes.size();
      requests_.push_back({static_cast<object_id>(one.object), one.offset, one.bytes.span(),
                           static_cast<std::uint64_t>(&one - slots_.data())});
    }
    if (!session_.in_background()) return;
    {
      const std::scoped_lock held(mutex_);
      if (ended_) throw error(errc::stopped, "the run was stopped");
      for (const read_request& one : requests_) slots_[to_size(one.tag)].in_flight = true;
    }
    if (!requests_.empty()) session_.read_many(requests_, {this, done});
  } while (count_ < slots_.size() && next_object());
}

PENSTOCK_INLINE bool forward_pieces::next_object() {
  while (!stuck_ && next_offset_ == next_size_ && next_object_ + 1 < objects_) {
    const auto size = size_ahead(next_object_ + 1);
    if (!size) return false;
    next_size_ = *size;
    ++next_object_;
    next_offset_ = 0;
    if (next_size_ != 0) return true;
  }
  return false;
}

PENSTOCK_INLINE std::optional<std::uint64_t> forward_pieces::size_ahead(std::size_t object) {
  try {
    if (!sizes_) return session_.size(static_cast<object_id>(object));
    sizes_->ask_from(object);
    const auto answer = sizes_->answer(object);
    if (answer.is == size_requests::state::known) return answer.size;
    stuck_ = answer.is == size_requests::state::failed;
  } catch (...) {
    stuck_ = true;  // `open` says why, when it is the object's turn
  }
  return std::nullopt;
}

PENSTOCK_INLINE void forward_pieces::done(void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
  auto& me = *static_cast<forward_pieces*>(self);
  const std::scoped_lock held(me.mutex_);
  slot& one = me.slots_[to_size(tag)];
  one.in_flight = false;
  one.failed = std::move(failed);
  me.changed_.notify_all();  // before the lock is given back: the destructor waits for this
}

}  // namespace detail
}  // namespace penstock::inline v0_1
