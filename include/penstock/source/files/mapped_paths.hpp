// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/file_pattern.hpp>
#include <penstock/storage/mapped_file.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// The local files of a source that maps them; `::` is part of a name there.
struct mapped_paths : given_paths {
  using given_paths::given_paths;
  template <pattern_text Text>
  // NOLINT: implicit
  mapped_paths(const Text& pattern) : given_paths(file_names(to_pattern(pattern))) {}
  [[nodiscard]] mapped_file files() && { return mapped_file(std::move(names)); }
};

}  // namespace detail
}  // namespace penstock::inline v0_1
