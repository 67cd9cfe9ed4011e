// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

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
[[nodiscard]] std::optional<split_path> split_member(std::string_view path) noexcept;

/// Whether WebDataset leaves the member out: `__x__`, alone or as the first folder.
/// Source: webdataset, tariterators.py, tar_file_iterator.
[[nodiscard]] bool skipped_member(std::string_view path) noexcept;

/// Names that WebDataset's samples have already: a member of that name is one too many.
[[nodiscard]] inline bool reserved_suffix(std::string_view suffix) noexcept {
  return suffix == "__key__" || suffix == "__url__";
}

/// Whether WebDataset leaves out the sample that has this member.
[[nodiscard]] inline bool marks_bad(std::string_view suffix, std::uint64_t size) noexcept {
  return size != 0 && suffix == "__bad__";
}

[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/member_name.ipp>
#endif
