// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/cut.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void cut::check() const {
  constexpr std::uint64_t maximum = 0xffffffffu;
  if (global == 0 || global > maximum) {
    throw error(errc::argument, {"a global step has 1 to 2^32 - 1 positions, not ", global});
  }
  if (world == 0 || world > maximum)
    throw error(errc::argument, {"a world has 1 to 2^32 - 1 ranks, not ", world});
  if (rank >= world) {
    throw error(errc::argument, {"rank ", rank, " is not below the world's size ", world});
  }
  if (lanes == 0 || lanes > maximum)
    throw error(errc::argument, {"there are 1 to 2^32 - 1 lanes, not ", lanes});
  if (size > std::uint64_t{1} << 63)
    throw error(errc::argument, {"an epoch has at most 2^63 positions, not ", size});
}

}  // namespace penstock::inline v0_1
