// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/row_origins.hpp>

namespace penstock::inline v0_1 {

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

}  // namespace penstock::inline v0_1
