// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/range_list.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void range_list::clear() noexcept {
  entries_.clear();
  bytes_ = resident_ = 0;
}

PENSTOCK_INLINE void range_list::add(const entry& one) {
  entries_.push_back(one);
  bytes_ += one.size;
}

}  // namespace penstock::inline v0_1
