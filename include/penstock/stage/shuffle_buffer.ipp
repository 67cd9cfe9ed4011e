// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/shuffle_buffer.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE shuffle_buffer_stage shuffle_buffer(any_count wanted, any_seed seed) {
  const std::uint64_t capacity = wanted.of("shuffle_buffer");
  if (capacity == 0)
    throw error(errc::argument, "shuffle_buffer(0) holds nothing; give it at least 1")
        .in_stage("shuffle_buffer");
  return {capacity, seed.value()};
}

}  // namespace penstock::inline v0_1
