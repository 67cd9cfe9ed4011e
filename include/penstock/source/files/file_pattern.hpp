// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/file.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

template <class T>
concept pattern_text =
    std::is_convertible_v<const T&, std::string_view> || std::is_convertible_v<const T&, std::string>;

template <pattern_text Text>
[[nodiscard]] std::string to_pattern(const Text& text) {
  if constexpr (std::convertible_to<const Text&, std::string_view>) {
    return std::string(static_cast<std::string_view>(text));
  } else {
    return text;
  }
}

/// The files that a pattern names, in WebDataset's notation: `::` separates patterns.
[[nodiscard]] file files_of(const std::string& pattern);
/// The paths of the files that a pattern names.
[[nodiscard]] std::vector<std::string> paths_of(const std::string& pattern);

inline file files_of(const std::string& pattern) {
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

inline std::vector<std::string> paths_of(const std::string& pattern) {
  const file found = files_of(pattern);
  return std::vector<std::string>(found.names().begin(), found.names().end());
}

}  // namespace detail
}  // namespace penstock::inline v0_1
