// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/any_ring.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE any_ring any_ring::own(std::size_t blocks, std::uint64_t grains, unsigned spins) {
  return of<ring>(blocks, grains, spins);
}

}  // namespace penstock::inline v0_1
