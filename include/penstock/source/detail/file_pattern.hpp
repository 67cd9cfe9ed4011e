// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/file.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail::tar {

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

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/file_pattern.ipp>
#endif
