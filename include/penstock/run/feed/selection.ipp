// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/feed/selection.hpp>

#include <algorithm>
#include <limits>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE selection::selection(item_range kept) : kept_(1, kept) {}

PENSTOCK_INLINE void selection::keep(item_range kept) { kept_.push_back(kept); }

PENSTOCK_INLINE std::uint64_t selection::passing(std::uint64_t count) const noexcept {
  for (const item_range& one : kept_) count = std::min(count, one.end) - std::min(count, one.first);
  return count;
}

PENSTOCK_INLINE std::uint64_t selection::reaching(std::uint64_t count) const noexcept {
  constexpr std::uint64_t maximum = std::numeric_limits<std::uint64_t>::max();
  for (const item_range& one : kept_) count = count > maximum - one.first ? maximum : count + one.first;
  return count;
}

PENSTOCK_INLINE std::uint64_t selection::mark_at(std::uint64_t number) const noexcept {
  if (kept_.empty()) return (world_ + rank_ - number % world_) % world_;
  const item_range& kept = kept_.front();
  return kept.first == 0 ? number : kept.first - std::min(number, kept.first);
}

PENSTOCK_INLINE std::uint64_t selection::number_at(std::uint64_t mark) const noexcept {
  if (kept_.empty()) return (world_ + rank_ - mark % world_) % world_;
  const item_range& kept = kept_.front();
  return kept.first == 0 ? mark : kept.first - std::min(mark, kept.first);
}

}  // namespace penstock::inline v0_1
