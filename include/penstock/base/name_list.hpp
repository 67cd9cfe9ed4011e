// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// Adds a name from a file to a list for a message. The list stays short, however many names the
/// file has.
void list_name(std::string& list, std::string_view name);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/base/name_list.ipp>
#endif
