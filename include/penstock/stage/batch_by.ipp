// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/batch_by.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::check_batch_by_tail(tail at_end) {
  if (at_end == tail::pad)
    throw error(errc::argument,
                "batch_by has no fixed number of samples to pad to; give it tail::keep or tail::drop")
        .in_stage("batch_by");
}

}  // namespace penstock::inline v0_1
