// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/touch_lines.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::inline v0_1::detail {

// Always inline, as touch_lines.

/// Prefetches the offsets of a row's value, if it has some.
[[gnu::always_inline]] inline void touch_arrow_offsets(const arrow_leaf& leaf, std::uint64_t row) noexcept {
  const arrow_column& column = *leaf.column;
  const arrow_layout layout = column.type->layout;
  const bool wide = layout == arrow_layout::bytes64 || layout == arrow_layout::list64;
  if (column.offsets != nullptr)
    __builtin_prefetch(column.offsets + to_size(column.offset + leaf.add + row) * (wide ? 8 : 4));
}

/// Prefetches the first `most` bytes of a row's value: of fixed width, also in lists of fixed length, or
/// bytes.
[[gnu::always_inline]] inline void touch_arrow_value(const arrow_leaf& leaf, std::uint64_t row,
                                                     std::uint64_t most) noexcept {
  const arrow_column* column = leaf.column;
  std::uint64_t first = row + leaf.add, count = 1;
  while (true) {
    if (first >= column->length || count > column->length - first) return;
    first += column->offset;
    if (column->type->layout != arrow_layout::fixed_list) break;
    count *= column->type->width;
    first *= column->type->width;
    column = &column->children.front();
  }
  const arrow_layout layout = column->type->layout;
  if (column->values == nullptr) return;
  if (layout == arrow_layout::fixed) {
    touch_lines(column->values + first * column->type->width, std::min(most, count * column->type->width));
  } else if (layout == arrow_layout::bytes32) {
    std::uint32_t begin = 0, end = 0;
    std::memcpy(&begin, column->offsets + 4 * first, sizeof(begin));
    std::memcpy(&end, column->offsets + 4 * (first + 1), sizeof(end));
    if (begin < end && end <= column->bytes)
      touch_lines(column->values + begin, std::min<std::uint64_t>(most, end - begin));
  }
}

}  // namespace penstock::inline v0_1::detail
