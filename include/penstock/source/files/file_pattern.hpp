// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/file.hpp>
#include <penstock/storage/file_names.hpp>

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
[[nodiscard]] inline file files_of(const std::string& pattern) {
  return pattern.find("::") == std::string::npos ? file(pattern) : file(files::names_of_patterns(pattern));
}
/// The paths of the files that a pattern names.
[[nodiscard]] inline std::vector<std::string> paths_of(const std::string& pattern) {
  const file found = files_of(pattern);
  return std::vector<std::string>(found.names().begin(), found.names().end());
}

/// Local files as a caller gives them: a pattern, or a list of paths, in which braces are not expanded.
struct given_paths {
  std::vector<std::string> names;

  template <pattern_text Text>
  // NOLINT: implicit
  given_paths(const Text& pattern) : names(paths_of(to_pattern(pattern))) {}
  // NOLINT: implicit
  given_paths(std::vector<std::string> paths) : names(files::listed_names(std::move(paths))) {}
  given_paths(std::initializer_list<const char*> paths)
      : given_paths(std::vector<std::string>(paths.begin(), paths.end())) {}
  given_paths(std::initializer_list<std::string> paths) : given_paths(std::vector<std::string>(paths)) {}
};

}  // namespace detail
}  // namespace penstock::inline v0_1
