// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// A member of a shard that holds a file's bytes.
struct shard_member {
  std::string_view path;  ///< valid until the next member is requested
  /// the offset of its first header: pax (except `g`) and long-name headers included
  std::uint64_t header = 0;
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  bool sparse = false;  ///< its bytes are stored without the holes
};

struct split_path {
  std::string_view key;
  std::string_view suffix;
};

/// Splits a member's path as WebDataset does: the key ends at the first dot of the basename, the rest is the
/// suffix. Returns nothing for a path that is not part of a sample. It matches exactly the regular
/// expression `^((?:.*/|)[^.]+)[.]([^/]*)$`, which has two corner cases: if a basename begins with a dot, as
/// in `a/.b`, the key is `a/`, provided that the folder's own name has no dot; and `.` does not match a line
/// feed, so after a line feed no folder may have a dot.
/// Source: webdataset, tariterators.py, base_plus_ext.
[[nodiscard]] std::optional<split_path> split_member(std::string_view path) noexcept;

/// Whether WebDataset skips the member: it is named `__x__`, or its first folder is.
/// Source: webdataset, tariterators.py, tar_file_iterator.
[[nodiscard]] bool skipped_member(std::string_view path) noexcept;

/// Whether it is a file that macOS puts beside another one, `._a.jpg` beside `a.jpg`, for what other file
/// systems cannot keep. Source: RFC 1740, and tar of macOS.
[[nodiscard]] inline bool is_apple_double(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1).starts_with("._");
}

/// Names that every WebDataset sample already has, so that no member may have them.
[[nodiscard]] inline bool reserved_suffix(std::string_view suffix) noexcept {
  return suffix == "__key__" || suffix == "__url__";
}

/// Whether WebDataset skips a sample that has this member.
[[nodiscard]] inline bool marks_bad(std::string_view suffix, std::uint64_t size) noexcept {
  return size != 0 && suffix == "__bad__";
}

[[nodiscard]] std::string lower_case(std::string_view text);

/// Throw errc::format for a member that no sample may have: a sparse file, and one whose name WebDataset
/// keeps for itself or the sample has already.
[[noreturn, gnu::cold]] void refuse_sparse(const shard_member& m, std::string_view key);
[[noreturn, gnu::cold]] void refuse_suffix(const shard_member& m, std::string_view lowered,
                                           std::string_view key);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/member_name.ipp>
#endif
