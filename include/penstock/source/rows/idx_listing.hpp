// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/dataset_format.hpp>
#include <penstock/source/idx.hpp>

/// IDX files among what is listed, for the formats that read them.
namespace penstock::inline v0_1::detail {

/// Whether the header matches the size.
[[nodiscard]] inline bool is_idx(const listed_files& some) {
  if (some.head.size() < 8 || !some.begins({"\0\0", 2})) return false;
  const bytes_view head = bytes_of(some.head);
  const auto code = std::to_integer<unsigned>(head[2]);
  constexpr std::size_t widths[] = {1, 1, 0, 2, 4, 4, 8};  // of the codes from 8 on
  if (code < 8 || code >= 8 + std::size(widths) || widths[code - 8] == 0) return false;
  try {
    (void)idx_layout(head, some.size, code, widths[code - 8]);
    return true;
  } catch (const error&) {
    return false;
  }
}

[[noreturn, gnu::cold]] inline void several_idx_files(const dataset_listing& there) {
  throw error(errc::argument, {"found ", there.describe(),
                               ": an IDX file is one array, so name one, or write "
                               "idx(images, labels)"})
      .in_file(there.path());
}

}  // namespace penstock::inline v0_1::detail
