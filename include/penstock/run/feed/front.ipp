// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/feed/front.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::uint64_t take_mark(std::span<const std::uint64_t>& marks) {
  if (marks.empty()) throw error(errc::state, "the state has too few places of the source; it was edited");
  const std::uint64_t mark = marks.front();
  marks = marks.subspan(1);
  return mark;
}
PENSTOCK_INLINE void check_none_left(std::span<const std::uint64_t> marks) {
  if (!marks.empty()) throw error(errc::state, "the state has too many places of the source; it was edited");
}
PENSTOCK_INLINE void add_mark(std::vector<std::uint64_t>& marks, std::uint64_t mark) {
  marks.push_back(mark);
}
PENSTOCK_INLINE void keep_marks(std::vector<std::uint64_t>& kept, std::span<const std::uint64_t> marks) {
  kept.assign(marks.begin(), marks.end());
}

}  // namespace penstock::inline v0_1
