// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/to_size.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::inline v0_1::detail {

// Always inline, as prefetch_lines.

/// Prefetches the offsets of a row's value, if it has some.
[[gnu::always_inline]] inline void prefetch_arrow_offsets(const arrow_leaf& leaf,
                                                          std::uint64_t row) noexcept {
  if (leaf.rows != 0) return;
  const arrow_column& column = *leaf.column;
  const arrow_layout layout = column.type->layout;
  const bool wide = layout == arrow_layout::bytes64 || layout == arrow_layout::list64;
  if (column.offsets != nullptr)
    __builtin_prefetch(column.offsets + to_size(column.offset + leaf.add + row) * (wide ? 8 : 4));
}

/// The bytes of a row's value, to be prefetched: of fixed width, also in lists of fixed length, or bytes
/// behind offsets. Empty for any other.
[[nodiscard]] inline bytes_view arrow_value_bytes(const arrow_leaf& leaf, std::uint64_t row) noexcept {
  if (row < leaf.rows) [[likely]]
    return {leaf.first + to_size(row * leaf.width), to_size(leaf.width)};
  const arrow_column& column = *leaf.column;
  if (column.type->layout != arrow_layout::bytes32 || column.values == nullptr ||
      row + leaf.add >= column.length)
    return {};
  std::uint32_t begin = 0, end = 0;
  const std::byte* const offsets = column.offsets + 4 * to_size(column.offset + leaf.add + row);
  std::memcpy(&begin, offsets, sizeof(begin));
  std::memcpy(&end, offsets + 4, sizeof(end));
  if (begin >= end || end > column.bytes) return {};
  return {column.values + begin, end - begin};
}

}  // namespace penstock::inline v0_1::detail
