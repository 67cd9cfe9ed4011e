// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/block.hpp>

#include <penstock/core/error.hpp>

#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::refuse_empty_batch() {
  throw error(
      errc::argument,
      "this batch is empty: it was moved from or reset, or the run had no other; use the batch that it was "
      "moved to");
}

PENSTOCK_INLINE void row_origins::clear() noexcept {
  positions_.clear();
  ends_.clear();
}

PENSTOCK_INLINE std::span<const position> row_origins::of(std::size_t row) const noexcept {
  if (one_each()) return {positions_.data() + row, 1};
  const std::size_t first = row == 0 ? 0 : ends_[row - 1];
  return {positions_.data() + first, ends_[row] - first};
}

PENSTOCK_INLINE void row_origins::reserve(std::size_t rows) { positions_.reserve(rows); }

PENSTOCK_INLINE position* row_origins::add_rows(std::size_t count) {
  const std::size_t before = positions_.size();
  if (!one_each()) add_ends(count);
  positions_.resize(before + count);
  return positions_.data() + before;
}

PENSTOCK_INLINE void row_origins::add_to_last(position origin) {
  if (one_each()) {
    ends_.reserve(positions_.size());
    for (std::size_t row = 0; row < positions_.size(); ++row) ends_.push_back(row + 1);
  }
  positions_.push_back(origin);
  ends_.back() = positions_.size();
}

PENSTOCK_INLINE void row_origins::add_ends(std::size_t count) {
  for (std::size_t i = 1; i <= count; ++i) ends_.push_back(positions_.size() + i);
}

PENSTOCK_INLINE block::block() = default;
PENSTOCK_INLINE block::~block() = default;

PENSTOCK_INLINE void block::add_positions(row_origins& all, std::uint64_t first_row,
                                          std::uint64_t count) const {
  const std::size_t n = detail::to_size(count);
  const std::uint32_t* const from_slots = sources.data() + first_row;
  position* const into = all.add_rows(n);
  const std::uint64_t of_epoch = epoch;
  if (!listed && batches[0].view.contiguous()) {
    const std::uint64_t first = index(0);
    for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, first + from_slots[i]};
  } else {
    for (std::size_t i = 0; i < n; ++i) into[i] = {of_epoch, index(from_slots[i])};
  }
}

PENSTOCK_INLINE void block::clear_failure() noexcept {
  bad_slot = no_slot;
  what = nullptr;
  bad.clear();
  warnings.store(0, std::memory_order_relaxed);
}

PENSTOCK_INLINE void block::fail(std::uint64_t slot, std::exception_ptr failure) noexcept {
  const std::lock_guard guard(lock);
  if (slot >= bad_slot) return;
  bad_slot = slot;
  what = std::move(failure);
}

PENSTOCK_INLINE void block::fail_at(std::uint64_t slot, position at, std::string_view stage) noexcept {
  try {
    throw;
  } catch (error& e) {
    try {
      e.add_context(at);
    } catch (...) {  // out of memory: keep it without the position
    }
    fail(slot, std::current_exception());
  } catch (...) {
    try {
      nested_error made;
      if (!stage.empty()) made.in_stage(stage);
      made.add_context(at);
      fail(slot, std::make_exception_ptr(made));
    } catch (...) {
      fail(slot, std::current_exception());
    }
  }
}

PENSTOCK_INLINE void block::note_bad(const penstock::bad_slot& one) {
  const std::lock_guard guard(lock);
  bad.add(one);
}

PENSTOCK_INLINE block_pool::block_pool(std::size_t maximum, void (*destroy)(block*) noexcept,
                                       bool oldest_first)
    : limit_(maximum), destroy_(destroy), oldest_first_(oldest_first) {
  all_.reserve(maximum);
  free_.reserve(maximum);
}

PENSTOCK_INLINE block_pool::~block_pool() {
  for (block* const one : all_) destroy_(one);
}

PENSTOCK_INLINE void block_pool::add(block* made) noexcept { all_.push_back(made); }

PENSTOCK_INLINE std::size_t block_pool::out() {
  const std::lock_guard guard(lock_);
  return all_.size() - free_.size();
}

PENSTOCK_INLINE block* block_pool::take() {
  const std::lock_guard guard(lock_);
  if (free_.empty()) return nullptr;
  const auto taken = oldest_first_ ? free_.begin() : free_.end() - 1;
  block* const one = *taken;
  free_.erase(taken);
  return one;
}

PENSTOCK_INLINE void block_pool::give_back(block* b) noexcept {
  const std::lock_guard guard(lock_);
  free_.push_back(b);
}

}  // namespace penstock::inline v0_1
