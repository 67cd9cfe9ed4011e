// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/row_origins.hpp>

namespace penstock::inline v0_1 {

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
