// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/places.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void check_finite(const order_input& in, std::string_view stage) {
  if (in.size >= std::uint64_t{1} << 63) {
    throw error(errc::argument, {"an endless order has no parts; write ", stage, " before repeat()"})
        .in_stage(stage);
  }
}

}  // namespace penstock::inline v0_1::detail
