// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/batch.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::uint64_t batch_size_of_all(std::uint64_t size, bool global, std::uint64_t ranks) {
  if (global && ranks > size) {
    throw error(errc::argument, {"global_batch(", size, ") has samples for at most ", size, " ranks, not ",
                                 ranks, "; make it larger or use fewer ranks"})
        .in_stage("batch");
  }
  if (!global && size > 0xffffffffu / ranks) {
    throw error(errc::argument,
                {"a global step has 1 to 2^32 - 1 samples, and batch(", size, ") makes it larger"})
        .in_stage("batch");
  }
  return global ? size : size * ranks;
}

PENSTOCK_INLINE std::string batch_text(std::uint64_t size, tail at_end, bool global) {
  return text({global ? "global_batch(" : "batch(", size, ", tail ", to_string(at_end), ")"});
}

}  // namespace penstock::inline v0_1::detail
