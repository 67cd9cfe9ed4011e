// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/member_name.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::optional<split_path> split_member(std::string_view path) noexcept {
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

PENSTOCK_INLINE bool skipped_member(std::string_view path) noexcept {
  const std::size_t slash = path.find('/');
  std::string_view first = path.substr(0, slash);
  // the `$` of its regular expression also matches before a final line feed
  if (slash == std::string_view::npos && first.size() >= 5 && first.back() == '\n') first.remove_suffix(1);
  if (!first.starts_with("__") || !first.ends_with("__")) return false;
  return slash == std::string_view::npos || first.size() >= 4;
}

PENSTOCK_INLINE std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

PENSTOCK_INLINE void refuse_sparse(const shard_member& m, std::string_view key) {
  throw error(errc::format, {"'", m.path,
                             "' is a sparse file, which is stored with its holes left out; write the archive "
                             "without --sparse"})
      .at_offset(m.header)
      .for_key(key);
}

PENSTOCK_INLINE void refuse_suffix(const shard_member& m, std::string_view lowered, std::string_view key) {
  throw error(errc::format,
              {reserved_suffix(lowered) ? "WebDataset keeps this name for itself, no member may have it: '"
                                        : "the sample has two members '",
               lowered, "'"})
      .at_offset(m.header)
      .for_key(key);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
