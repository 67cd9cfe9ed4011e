// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_negative(std::uint64_t magnitude, std::string_view stage) {
  throw error(errc::argument, {stage, "(-", magnitude, "): the number is negative; give it 0 or more"})
      .in_stage(stage);
}

}  // namespace penstock::inline v0_1::detail
