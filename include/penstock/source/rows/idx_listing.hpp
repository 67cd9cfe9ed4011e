// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/dataset_format.hpp>
#include <penstock/source/idx.hpp>

/// IDX files among what is listed, for the formats that read them.
namespace penstock::inline v0_1::detail {

template <class T, class>
using idx_source_of = idx_source<T>;

/// Whether the header matches the size.
[[nodiscard]] inline bool is_idx(const listed_files& some) {
  if (some.head.size() < 8 || !some.begins({"\0\0", 2})) return false;
  const bytes_view head = bytes_of(some.head);
  const auto code = std::to_integer<unsigned>(head[2]), rank = std::to_integer<unsigned>(head[3]);
  const std::uint64_t width = code == 8 || code == 9     ? 1
                              : code == 11               ? 2
                              : code == 12 || code == 13 ? 4
                              : code == 14               ? 8
                                                         : 0;
  if (width == 0 || rank == 0 || rank > extents::max_rank || head.size() < 4 + 4 * rank) return false;
  std::uint64_t bytes = width;
  for (std::size_t i = 0; i < rank; ++i) {
    const std::uint64_t length = idx_number<std::uint32_t>(head.data() + 4 + 4 * i);
    if (length != 0 && bytes > some.size / length) return false;
    bytes *= length;
  }
  return bytes + 4 + 4 * rank == some.size;
}

[[noreturn, gnu::cold]] inline void several_idx_files(const dataset_listing& there) {
  throw error(errc::argument, {"found ", there.describe(),
                               ": an IDX file is one array, so name one, or write "
                               "idx(images, labels)"})
      .in_file(there.path());
}

}  // namespace penstock::inline v0_1::detail
