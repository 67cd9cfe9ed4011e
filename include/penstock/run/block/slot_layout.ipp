// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/slot_layout.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_channels(const extents& shape) {
  throw error(errc::shape, {"batch cannot move the channels to the front of a value of shape ",
                            to_string(shape), "; channels_first takes (height, width, channels)"})
      .in_stage("batch");
}

PENSTOCK_INLINE void refuse_rows(const extents& shape, std::size_t alignment) {
  throw error(errc::shape,
              {"batch cannot lay out a value of shape ", to_string(shape), " in rows of ", alignment,
               " bytes; pitched takes arrays with at least one dimension that fit in memory"})
      .in_stage("batch");
}

PENSTOCK_INLINE void refuse_rank(const extents& shape) {
  throw error(errc::shape, {"batch cannot add a dimension in front of a value of shape ", to_string(shape),
                            ", since arrays have at most eight; give it fewer in map before batch"})
      .in_stage("batch");
}

}  // namespace penstock::inline v0_1::detail
