// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/batch_columns.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::span<const std::uint8_t> detail::batch_facts::valid_mask() const {
  if (mask.empty()) {
    mask.assign(size, 0);
    std::fill_n(mask.begin(), static_cast<std::ptrdiff_t>(valid), std::uint8_t{1});
  }
  return mask;
}

}  // namespace penstock::inline v0_1
