// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Adds a name from a file to a list for a message. The list stays short, however many names the
/// file has.
inline void list_name(std::string& list, std::string_view name) {
  if (list.size() < 100)
    list.append(list.empty() ? "" : ", ").append(name.substr(0, 80));
  else if (!list.ends_with(", ..."))
    list += ", ...";
}

}  // namespace penstock::inline v0_1::detail
