// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/function_names.hpp>

#include <cstddef>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string short_type_name(std::string_view signature) {
  // GCC: "... [with T = a::b<c>; ...]"; Clang: "... [T = a::b<c>]"
  const std::size_t begin = signature.find("T = ");
  if (begin == signature.npos || signature.find("lambda") != signature.npos) return {};
  std::string_view name = signature.substr(begin + 4);
  name = name.substr(0, name.find_first_of("<;]"));
  if (const std::size_t space = name.rfind("::"); space != name.npos) name.remove_prefix(space + 2);
  if (constexpr std::string_view end = "_operation"; name.ends_with(end)) name.remove_suffix(end.size());
  return std::string(name);
}

}  // namespace penstock::inline v0_1::detail
