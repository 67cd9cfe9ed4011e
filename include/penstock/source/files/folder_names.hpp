// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// Whether a relative path stays within the folder it is relative to. A description must not lead to files
/// outside its folder.
[[nodiscard]] bool stays_in_folder(std::string_view path) noexcept;

inline bool stays_in_folder(std::string_view path) noexcept {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (path.substr(begin, end - begin) == "..") return false;
    begin = end + 1;
  }
  return true;
}

/// The largest description of a folder that is read.
inline constexpr std::uint64_t max_description_bytes = 256_MiB;
inline void check_index_size(std::uint64_t bytes) {
  if (bytes > max_description_bytes)
    throw error(errc::limit, {"an index of ", bytes, " bytes; the limit is 256 MiB"});
}

}  // namespace penstock::inline v0_1::detail
