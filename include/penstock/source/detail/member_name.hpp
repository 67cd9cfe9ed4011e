// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
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
/// `^((?:.*/|)[^.]+)[.]([^/]*)$`, which has two corners: of a basename that begins with a dot, `a/.b`, the
/// key is `a/` if the folder's own name has no dot; and its first dot matches no line feed, so that behind
/// one no folder may have a dot.
/// Source: webdataset, tariterators.py, base_plus_ext.
[[nodiscard]] inline std::optional<split_path> split_member(std::string_view path) noexcept {
  const auto after_slash = [](std::string_view text) {
    const std::size_t slash = text.rfind('/');
    return slash == std::string_view::npos ? 0 : slash + 1;
  };
  const std::size_t base = after_slash(path.substr(0, path.find('\n')));
  const std::size_t dot = path.find('.', base);
  if (dot == std::string_view::npos || path.find('/', dot) != std::string_view::npos) return std::nullopt;
  if (dot == base) {
    if (base == 0) return std::nullopt;
    const std::size_t above = after_slash(path.substr(0, base - 1));
    if (path.substr(above, base - above).find('.') != std::string_view::npos) return std::nullopt;
  }
  return split_path{path.substr(0, dot), path.substr(dot + 1)};
}

/// Whether WebDataset leaves the member out: `__x__`, alone or as the first folder.
/// Source: webdataset, tariterators.py, tar_file_iterator.
[[nodiscard]] inline bool skipped_member(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  std::string_view first = path.substr(0, slash);
  // its expression's `$` stands also before a line feed at the end
  if (slash == std::string_view::npos && first.size() >= 5 && first.back() == '\n') first.remove_suffix(1);
  if (!first.starts_with("__") || !first.ends_with("__")) return false;
  return slash == std::string_view::npos || first.size() >= 4;
}

/// Names that WebDataset's samples have already: a member of that name is one too many.
[[nodiscard]] inline bool reserved_suffix(std::string_view suffix) noexcept {
  return suffix == "__key__" || suffix == "__url__";
}

/// Whether WebDataset leaves out the sample that has this member.
[[nodiscard]] inline bool marks_bad(std::string_view suffix, std::uint64_t size) noexcept {
  return size != 0 && suffix == "__bad__";
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
