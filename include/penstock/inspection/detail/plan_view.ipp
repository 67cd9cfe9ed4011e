// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/plan_view.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::vector<std::uint64_t> plan_view::drawn(std::uint64_t epoch) const {
  position_buffer order = *buffer;
  order.begin(epoch, positions);
  std::vector<std::uint64_t> ordinals(static_cast<std::size_t>(positions));
  for (std::uint64_t& ordinal : ordinals) ordinal = order.next();
  return ordinals;
}

}  // namespace penstock::inline v0_1::detail
