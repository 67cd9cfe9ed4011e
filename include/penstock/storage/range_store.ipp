// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/range_store.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <bit>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE range_store::range_store(std::uint64_t bytes, std::uint64_t rows)
    : capacity_(std::max<std::uint64_t>(bytes / 64, 4) * 64),
      rows_(std::bit_ceil(std::max<std::uint64_t>(rows, 2))),
      slots_(detail::to_size(rows_)),
      reads_(detail::to_size(2 * rows_)) {
  memory_.resize_for_overwrite(detail::to_size(capacity_));
}

PENSTOCK_INLINE range_store::~range_store() = default;

// Returns the memory of the oldest unused reads to the ring.
PENSTOCK_INLINE void range_store::reclaim() noexcept {
  for (; oldest_ != next_; ++oldest_) {
    const read& one = read_at(oldest_);
    if (one.users.load(std::memory_order_seq_cst) != 0) return;
    free_from_ = one.end;
  }
  free_from_ = reserved_to_;
}

PENSTOCK_INLINE range_store::read* range_store::reserve(std::uint64_t bytes, std::uint32_t users,
                                                        std::uint32_t requests) {
  reclaim();
  const std::uint64_t place = reserved_to_ % capacity_, room = (bytes + 63) / 64 * 64;
  // A read is contiguous: if it does not fit before the end of the memory, it starts at the beginning.
  const std::uint64_t begin = place + room > capacity_ ? reserved_to_ + (capacity_ - place) : reserved_to_;
  if (begin + room - free_from_ > capacity_ || next_ - oldest_ == 2 * rows_) return nullptr;
  read& one = read_at(next_++);
  one.bytes = memory_.data() + begin % capacity_;
  one.end = reserved_to_ = begin + room;
  one.state.store(read::loading, std::memory_order_relaxed);
  one.requests.store(requests, std::memory_order_relaxed);
  one.good.store(true, std::memory_order_relaxed);
  one.users.store(users + 1, std::memory_order_relaxed);
  return &one;
}

PENSTOCK_INLINE bool range_store::wait_for_room() {
  std::unique_lock held(lock_);
  wants_room_.store(true, std::memory_order_seq_cst);
  room_.wait(held, [this] {
    return stopped_ || halted_ || passed_.load(std::memory_order_seq_cst) > swept_ || oldest_ == next_ ||
           read_at(oldest_).users.load(std::memory_order_seq_cst) == 0;
  });
  wants_room_.store(false, std::memory_order_relaxed);
  return !stopped_ && !halted_;
}

PENSTOCK_INLINE void range_store::say_room() noexcept {
  if (!wants_room_.load(std::memory_order_seq_cst)) return;
  const std::lock_guard guard(lock_);
  room_.notify_one();
}

PENSTOCK_INLINE void range_store::let_go(const slot& of) noexcept {
  for (std::uint32_t i = 0; i < of.count; ++i) release(*of.parts[i].from);
}

PENSTOCK_INLINE bool range_store::is_taken(std::uint64_t row) noexcept {
  if (row < passed()) return true;
  const std::uint64_t seen = at(row).word.load(std::memory_order_acquire);
  return row_of(seen) > row || seen == word(row, taken);
}

PENSTOCK_INLINE bool range_store::claim(std::uint64_t row) {
  if (row < swept_) return false;
  slot& here = at(row);
  std::uint64_t seen = here.word.load(std::memory_order_acquire);
  do {
    if (condition_of(seen) != unseen && row_of(seen) >= row) return false;
  } while (!here.word.compare_exchange_weak(seen, word(row, claimed), std::memory_order_acq_rel,
                                            std::memory_order_acquire));
  if (condition_of(seen) == there) let_go(here);
  here.count = 0;
  return true;
}

PENSTOCK_INLINE bool range_store::add(std::uint64_t row, const fetched_part& part) {
  slot& here = at(row);
  if (here.count == max_parts) return false;
  here.parts[here.count++] = part;
  return true;
}

PENSTOCK_INLINE void range_store::publish(std::uint64_t row) {
  slot& here = at(row);
  std::uint64_t expected = word(row, claimed);
  const condition now = row < swept_ ? taken : there;  // no later sweep would see it
  if (!here.word.compare_exchange_strong(expected, word(row, now), std::memory_order_acq_rel,
                                         std::memory_order_acquire) ||
      now == taken)
    let_go(here);
}

PENSTOCK_INLINE bool range_store::needs_oldest(std::uint64_t row) noexcept {
  const slot& here = at(row);
  return std::any_of(here.parts.begin(), here.parts.begin() + here.count,
                     [this](const fetched_part& part) { return part.from == &read_at(oldest_); });
}

PENSTOCK_INLINE void range_store::leave_out(std::uint64_t first, std::uint64_t end) noexcept {
  const std::uint64_t before = left_out_.load(std::memory_order_relaxed), begin = before >> count_bits;
  if (begin + (before & max_left_out) == first) first = begin;
  first = std::max(first, end - std::min(end, max_left_out));
  left_out_.store(first >> (64 - count_bits) == 0 ? first << count_bits | (end - first) : 0,
                  std::memory_order_relaxed);
}

PENSTOCK_INLINE void range_store::begin(std::uint64_t requests) {
  const std::lock_guard guard(lock_);
  loading_ += requests;
}

PENSTOCK_INLINE void range_store::end(read& one, bool good) noexcept {
  if (!good) one.good.store(false, std::memory_order_relaxed);
  if (one.requests.fetch_sub(1, std::memory_order_acq_rel) == 1) {  // the last one
    one.state.store(one.good.load(std::memory_order_relaxed) ? read::ready : read::failed,
                    std::memory_order_release);
    release(one);
  }
  // the thread that waits for the last read may destroy the store afterwards
  const std::lock_guard guard(lock_);
  --loading_;
  ended_.notify_all();
}

PENSTOCK_INLINE void range_store::sweep() {
  const std::uint64_t end = passed();
  for (swept_ = std::max(swept_, end - std::min(end, rows_)); swept_ < end; ++swept_) {
    slot& here = at(swept_);
    std::uint64_t seen = here.word.load(std::memory_order_relaxed);
    if (condition_of(seen) == there && row_of(seen) <= swept_ &&
        here.word.compare_exchange_strong(seen, word(row_of(seen), taken), std::memory_order_acq_rel))
      let_go(here);
  }
}

PENSTOCK_INLINE void range_store::passed(std::uint64_t row) noexcept {
  passed_.store(row, std::memory_order_seq_cst);
  say_room();
}

PENSTOCK_INLINE void range_store::halt() noexcept {
  const std::lock_guard guard(lock_);
  halted_ = true;
  room_.notify_all();
  ended_.notify_all();
}

PENSTOCK_INLINE void range_store::wait_for_reads() {
  std::unique_lock held(lock_);
  ended_.wait(held, [this] { return loading_ == 0; });
}

PENSTOCK_INLINE void range_store::clear() {
  for (std::uint64_t i = 0; i < rows_; ++i) at(i).word.store(0, std::memory_order_relaxed);
  for (std::uint64_t i = 0; i < 2 * rows_; ++i) read_at(i).users.store(0, std::memory_order_relaxed);
  oldest_ = next_ = free_from_ = reserved_to_ = swept_ = 0;
  passed_.store(0, std::memory_order_release);
  left_out_.store(0, std::memory_order_relaxed);
  const std::lock_guard guard(lock_);
  halted_ = false;
}

PENSTOCK_INLINE std::span<const fetched_part> range_store::take(std::uint64_t row) noexcept {
  slot& here = at(row);
  std::uint64_t seen = here.word.load(std::memory_order_acquire);
  do {
    if (condition_of(seen) != unseen && (row_of(seen) > row || seen == word(row, taken))) return {};
  } while (!here.word.compare_exchange_weak(seen, word(row, taken), std::memory_order_acq_rel,
                                            std::memory_order_acquire));
  if (condition_of(seen) != there) return {};
  if (row_of(seen) == row) return {here.parts.data(), here.count};
  let_go(here);  // belongs to an older row that no worker took
  return {};
}

PENSTOCK_INLINE bool range_store::wait(const fetched_part& part) {
  const auto& state = part.from->state;
  std::uint32_t now = state.load(std::memory_order_acquire);
  if (now == read::loading) {
    std::unique_lock held(lock_);
    ended_.wait(held, [&] {
      now = state.load(std::memory_order_acquire);
      return now != read::loading || stopped_ || halted_;
    });
    if (now == read::loading)
      throw error(errc::stopped, "the run was stopped or restarted while bytes were on their way");
  }
  return now == read::ready;
}

PENSTOCK_INLINE void range_store::release(read& one) noexcept {
  if (one.users.fetch_sub(1, std::memory_order_seq_cst) == 1) say_room();
}

PENSTOCK_INLINE void range_store::stop() noexcept {
  const std::lock_guard guard(lock_);
  stopped_ = true;
  room_.notify_all();
  ended_.notify_all();
}

}  // namespace penstock::inline v0_1
