// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/rows_by_room.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void rows_by_room::reset(std::uint32_t largest) {
  largest_ = largest;
  levels_ = 1;
  while (levels_ < max_levels && (largest - 1) >> (levels_ * bits) != 0) ++levels_;
  made_ = 0;
  removed_ = none;
  static_cast<void>(fresh_node());
}

PENSTOCK_INLINE std::uint32_t rows_by_room::fresh_node() {
  std::uint32_t at = removed_;
  if (at != none) {
    removed_ = nodes_[at].children[0];
  } else {
    at = made_++;
    if (at == nodes_.size()) nodes_.emplace_back();
  }
  nodes_[at].used = 0;
  return at;
}

PENSTOCK_INLINE std::uint32_t rows_by_room::least(std::uint32_t room) const noexcept {
  if (room > largest_) return none;
  const std::uint32_t key = room - 1;
  std::uint32_t at = 0, turn = none;  // the lowest node on the way that has a child beyond it
  int level = levels_ - 1, turn_level = 0;
  for (;; --level) {
    const std::uint32_t d = digit(key, level);
    const std::uint64_t from = nodes_[at].used >> d;
    if (level == 0 && from != 0)
      return (key | 63u) - 63u + d + static_cast<std::uint32_t>(std::countr_zero(from)) + 1;
    if (from >> 1 != 0) {
      turn = at;
      turn_level = level;
    }
    if (level == 0 || (from & 1u) == 0) break;
    at = nodes_[at].children[d];
  }
  if (turn == none) return none;
  const std::uint32_t d = digit(key, turn_level) + 1;
  std::uint32_t found = key >> (turn_level * bits) >> bits;
  std::uint32_t next = d + static_cast<std::uint32_t>(std::countr_zero(nodes_[turn].used >> d));
  for (at = turn, level = turn_level;; --level) {
    found = found << bits | next;
    if (level == 0) return found + 1;
    at = nodes_[at].children[next];
    next = static_cast<std::uint32_t>(std::countr_zero(nodes_[at].used));
  }
}

PENSTOCK_INLINE std::uint32_t& rows_by_room::first(std::uint32_t room) noexcept {
  const std::uint32_t key = room - 1;
  std::uint32_t at = 0;
  for (int level = levels_ - 1; level != 0; --level) at = nodes_[at].children[digit(key, level)];
  return nodes_[at].children[digit(key, 0)];
}

PENSTOCK_INLINE std::uint32_t& rows_by_room::make(std::uint32_t room) {
  const std::uint32_t key = room - 1;
  std::uint32_t at = 0;
  for (int level = levels_ - 1;; --level) {
    const std::uint32_t d = digit(key, level);
    if ((nodes_[at].used >> d & 1u) == 0) {
      const std::uint32_t child = level == 0 ? none : fresh_node();
      nodes_[at].used |= std::uint64_t{1} << d;
      nodes_[at].children[d] = child;
    }
    if (level == 0) return nodes_[at].children[d];
    at = nodes_[at].children[d];
  }
}

PENSTOCK_INLINE void rows_by_room::remove(std::uint32_t room) noexcept {
  const std::uint32_t key = room - 1;
  std::uint32_t way[max_levels];
  std::uint32_t at = 0;
  for (int level = levels_ - 1;; --level) {
    way[level] = at;
    if (level == 0) break;
    at = nodes_[at].children[digit(key, level)];
  }
  for (int level = 0; level < levels_; ++level) {
    node& n = nodes_[way[level]];
    n.used &= ~(std::uint64_t{1} << digit(key, level));
    if (n.used != 0 || level == levels_ - 1) return;
    n.children[0] = removed_;
    removed_ = way[level];
  }
}

}  // namespace penstock::inline v0_1::detail
