// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/file_pattern.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail::tar {

PENSTOCK_INLINE file files_of(const std::string& pattern) {
  if (pattern.find("::") == std::string::npos) return file(pattern);
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find("::", begin), pattern.size());
    const file some(std::string_view(pattern).substr(begin, end - begin));
    names.insert(names.end(), some.names().begin(), some.names().end());
    begin = end + 2;
  }
  return file(std::move(names));
}

PENSTOCK_INLINE std::vector<std::string> paths_of(const std::string& pattern) {
  const file found = files_of(pattern);
  return std::vector<std::string>(found.names().begin(), found.names().end());
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
