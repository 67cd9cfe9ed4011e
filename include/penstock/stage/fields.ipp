// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/fields.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::refuse_missing(std::string_view wanted, std::string_view has,
                                            std::string_view key) {
  throw error(errc::missing,
              {"the sample has no member '", wanted, "'; it has: ", (has.empty() ? "none" : has)})
      .for_key(key);
}

}  // namespace penstock::inline v0_1
