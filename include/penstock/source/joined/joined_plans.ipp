// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/joined/joined_plans.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string name_of_joined(std::string_view joint, std::size_t k, std::string_view what) {
  return text({"source ", k, " of ", joint, " (", what, ")"});
}

}  // namespace penstock::inline v0_1::detail
