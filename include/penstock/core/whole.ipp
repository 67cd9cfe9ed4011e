// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/whole.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void whole_sample::make_items(std::size_t count) {
  if (items_.size() < count) items_.resize(count);
}

PENSTOCK_INLINE bytes_view whole_sample::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < size_; ++i)
    if (items_[i].name == name) return items_[i].bytes.view();
  throw error(errc::missing, {"the sample has no member '", name, "'"}).for_key(key_);
}

}  // namespace penstock::inline v0_1
