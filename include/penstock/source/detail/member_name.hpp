// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::tar {

struct split_path {
  std::string_view key;
  std::string_view suffix;
};

/// Splits a member's path as WebDataset does: the key ends at the first dot of the basename, the rest is the
/// suffix. Nothing for what is no part of a sample. Exactly the regular expression
/// `^((?:.*/|)[^.]+)[.]([^/]*)$`, which has a corner: of a basename that begins with a dot, `a/.b`, the key
/// is `a/` if the folder's own name has no dot.
/// Source: webdataset, tariterators.py, base_plus_ext.
[[nodiscard]] inline std::optional<split_path> split_member(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos) return std::nullopt;
  if (dot == base) {
    if (base == 0) return std::nullopt;
    const std::size_t above = slash == 0 ? std::string_view::npos : path.rfind('/', slash - 1);
    const std::size_t from = above == std::string_view::npos ? 0 : above + 1;
    if (path.substr(from, base - from).find('.') != std::string_view::npos) return std::nullopt;
  }
  return split_path{path.substr(0, dot), path.substr(dot + 1)};
}

/// Whether WebDataset leaves the member out: `__x__`, alone or as the first folder.
/// Source: webdataset, tariterators.py, tar_file_iterator.
[[nodiscard]] inline bool skipped_member(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  const std::string_view first = path.substr(0, slash);
  if (!first.starts_with("__") || !first.ends_with("__")) return false;
  return slash == std::string_view::npos || first.size() >= 4;
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
