// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/named_split.hpp>
#include <penstock/core/to_size.hpp>

#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The files below a folder, sorted by path; all paths share one string.
struct folder_files {
  std::string root;
  std::string paths;                   // of all files, relative to the root, one after another
  std::vector<std::uint64_t> ends{0};  // the end of each path in `paths`
  std::vector<std::uint64_t> sizes;    // of the files
  std::vector<std::int32_t> labels;    // -1 if there are no classes
  std::vector<std::string> classes;    // sorted
  std::uint64_t bytes = 0;
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return sizes.size(); }
  [[nodiscard]] std::string_view path(std::size_t i) const noexcept {
    return std::string_view(paths).substr(static_cast<std::size_t>(ends[i]),
                                          detail::to_size(ends[i + 1] - ends[i]));
  }
};

/// Walks a folder and its subfolders, following links. Of several splits, which are folders unless all names
/// of files say them, one must be named.
[[nodiscard]] folder_files files_below(std::string root, std::vector<std::string> extensions,
                                       const named_split* wanted = nullptr);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/folder_files.ipp>
#endif
