// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/keep_in_memory.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE keep_in_memory_stage keep_in_memory(any_count limit) {
  const std::uint64_t bytes = limit.of("keep_in_memory");
  if (bytes == 0)
    throw error(errc::argument,
                "keep_in_memory(0) keeps nothing; give it bytes, as in keep_in_memory(8_GiB), or "
                "remove it")
        .in_stage("keep_in_memory");
  return {bytes};
}
PENSTOCK_INLINE keep_in_memory_stage keep_in_memory(byte_count limit) {
  return keep_in_memory(any_count(std::uint64_t{limit}));
}

}  // namespace penstock::inline v0_1
