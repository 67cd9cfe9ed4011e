// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/block_plan.hpp>

#include <algorithm>
#include <bit>

namespace penstock::inline v0_1::detail::blocks {

PENSTOCK_INLINE std::uint32_t block_plan::add(const std::vector<key>& blocks) {
  const std::scoped_lock lock(mutex_);
  const auto first = static_cast<std::uint32_t>(keys_.size());
  const std::size_t count = first + blocks.size();
  std::vector<std::uint32_t> larger;
  if (table_.size() < 2 * count) larger.resize(std::bit_ceil(4 * count));
  blocks_.resize(count);
  keys_.insert(keys_.end(), blocks.begin(), blocks.end());  // nothing throws from here on
  if (!larger.empty()) {
    table_.swap(larger);
    for (std::uint32_t block = 0; block < first; ++block) place(block);
  }
  for (std::uint32_t block = first; block < keys_.size(); ++block) place(block);
  return first;
}

PENSTOCK_INLINE void block_plan::plan_read(std::uint32_t block, std::uint64_t row) {
  const std::scoped_lock lock(mutex_);
  known& one = blocks_[block];
  if (one.tail != none) {
    use& last = uses_[one.tail];
    if (row <= last.last + close && row - last.first < longest_use) {
      last.last = std::max(last.last, row);
      return;
    }
  }
  append(block, row);
}
PENSTOCK_INLINE bool block_plan::has_room() const {
  const std::scoped_lock lock(mutex_);
  return end_ - begin_ < max_uses;
}

PENSTOCK_INLINE void block_plan::stand_at(std::uint64_t row, std::uint64_t seen, bool ends) {
  const std::scoped_lock lock(mutex_);
  row_ = row;
  seen_ = seen;
  ends_ = ends;
  for (; begin_ != end_ && at(begin_).last < row; ++begin_) {
    known& one = blocks_[at(begin_).block];
    // Uses of a block are in order, so this is its first one.
    one.head = at(begin_).next;
    if (one.head == none) one.tail = none;
  }
}
PENSTOCK_INLINE void block_plan::clear() {
  const std::scoped_lock lock(mutex_);
  for (known& one : blocks_) one = {};
  begin_ = end_ = row_ = seen_ = 0;
  ends_ = false;
}
PENSTOCK_INLINE next_use block_plan::next(std::uint32_t block) const {
  const std::scoped_lock lock(mutex_);
  return next_locked(block);
}
PENSTOCK_INLINE next_use block_plan::next(const key& what) const {
  const std::scoped_lock lock(mutex_);
  return next_locked(find(what));
}
PENSTOCK_INLINE std::uint64_t block_plan::distance(const key& what) const {
  const std::scoped_lock lock(mutex_);
  const next_use found = next_locked(find(what));
  return found.is_never() ? next_uses::farthest : found.rows_from(row_);
}

PENSTOCK_INLINE void block_plan::list_coming(std::size_t maximum, std::vector<coming>& into) const {
  constexpr std::uint64_t max_looks = 1u << 16;
  const std::scoped_lock lock(mutex_);
  into.clear();
  for (std::uint64_t i = begin_; i != end_ && i - begin_ < max_looks && into.size() < maximum; ++i) {
    const use& one = at(i);
    const auto here = static_cast<std::uint32_t>(i & (uses_.size() - 1));
    if (one.last >= row_ && blocks_[one.block].head == here)
      into.push_back({one.block, std::max(one.first, row_)});
  }
}

PENSTOCK_INLINE void block_plan::append(std::uint32_t block, std::uint64_t row) {
  if (end_ - begin_ == uses_.size()) grow();
  const auto here = static_cast<std::uint32_t>(end_ & (uses_.size() - 1));
  uses_[here] = {row, row, block, none};
  known& one = blocks_[block];
  if (one.tail == none)
    one.head = here;
  else
    uses_[one.tail].next = here;
  one.tail = here;
  ++end_;
}

PENSTOCK_INLINE void block_plan::grow() {
  std::vector<use> before(std::max<std::size_t>(1024, 2 * uses_.size()));
  before.swap(uses_);
  const std::uint64_t begin = begin_, end = end_;
  begin_ = end_ = 0;
  for (known& one : blocks_) one = {};
  for (std::uint64_t i = begin; i != end; ++i) {
    const use& one = before[to_size(i & (before.size() - 1))];
    append(one.block, one.first);
    at(end_ - 1).last = one.last;
  }
}
PENSTOCK_INLINE next_use block_plan::next_locked(std::uint32_t block) const noexcept {
  if (block != none)
    for (std::uint32_t i = blocks_[block].head; i != none; i = uses_[i].next)
      if (uses_[i].last >= row_) return next_use::at(std::max(uses_[i].first, row_));
  return ends_ ? next_use::never() : next_use::not_before(std::max(seen_, row_));
}
PENSTOCK_INLINE std::uint32_t block_plan::find(const key& what) const noexcept {
  if (table_.empty()) return none;
  for (std::uint64_t at = what.high;; ++at) {
    const std::uint32_t one = table_[to_size(at & (table_.size() - 1))];
    if (one == 0) return none;
    if (keys_[one - 1] == what) return one - 1;
  }
}
PENSTOCK_INLINE void block_plan::place(std::uint32_t block) noexcept {
  std::uint64_t at = keys_[block].high;
  while (table_[to_size(at & (table_.size() - 1))] != 0) ++at;
  table_[to_size(at & (table_.size() - 1))] = block + 1;
}

}  // namespace penstock::inline v0_1::detail::blocks
