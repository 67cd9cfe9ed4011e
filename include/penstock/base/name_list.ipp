// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/name_list.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void list_name(std::string& list, std::string_view name) {
  if (list.size() < 100)
    list.append(list.empty() ? "" : ", ").append(name.substr(0, 80));
  else if (!list.ends_with(", ..."))
    list += ", ...";
}

}  // namespace penstock::inline v0_1::detail
