// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/file_pattern.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The local files of a source that maps them, as a caller gives them: a pattern of names, or a list of
/// paths, such as that of `unpacked`.
class mapped_paths {
 public:
  template <pattern_text Text>
  // NOLINT: implicit
  mapped_paths(const Text& pattern) : files_(std::string_view(to_pattern(pattern))) {}
  // NOLINT: implicit
  mapped_paths(std::vector<std::string> paths) : files_(std::move(paths)) {}
  mapped_paths(std::initializer_list<const char*> paths)
      : files_(std::vector<std::string>(paths.begin(), paths.end())) {}

  [[nodiscard]] mapped_file files() && { return std::move(files_); }

 private:
  mapped_file files_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
