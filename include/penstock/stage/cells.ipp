// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/cells.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void no_such_column(std::string_view name, const std::string& there) {
  throw error(errc::missing, {"the row has no column '", name, "'; it has: ", there});
}

}  // namespace penstock::inline v0_1::detail
