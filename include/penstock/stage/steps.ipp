// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/steps.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE steps_stage steps(any_count wanted) {
  const std::uint64_t count = wanted.of("steps");
  if (count == 0)
    throw error(errc::argument, "steps(0) makes an epoch of no batches; give it at least 1")
        .in_stage("steps");
  return {count};
}

}  // namespace penstock::inline v0_1
