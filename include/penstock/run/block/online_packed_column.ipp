// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/block/online_packed_column.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_lengths(std::uint64_t one, std::uint64_t other) {
  throw error(errc::shape,
              {"pack puts the fields of a sample into the same places of a row, and this one has ", one,
               " values in one field and ", other, " in another; give them equal lengths"})
      .in_stage("pack");
}

}  // namespace penstock::inline v0_1::detail
