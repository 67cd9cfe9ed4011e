// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/shuffle_buffer.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE shuffle_buffer_stage shuffle_buffer(std::uint64_t capacity, std::uint64_t seed) {
  if (capacity == 0)
    throw error(errc::argument, "shuffle_buffer(0) holds nothing; give it at least 1")
        .in_stage("shuffle_buffer");
  return {capacity, seed};
}

}  // namespace penstock::inline v0_1
