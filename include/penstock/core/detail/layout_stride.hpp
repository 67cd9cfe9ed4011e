// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>

#include <array>

namespace penstock::inline v0_1::detail {

/// Whether `std::layout_stride` takes these strides: all are positive, and no two indexes reach one element.
/// Strides that reach nothing, because their dimension has one element or the array has none, are replaced by
/// ones that it takes.
/// Source: ISO C++23, [mdspan.layout.stride.cons], preconditions.
[[nodiscard]] constexpr bool fit_layout_stride(const extents& shape, element_strides& strides) noexcept {
  if (shape.elements() == 0) {
    std::uint64_t step = 1;
    for (std::size_t i = shape.rank(); i-- > 0; step *= shape[i] == 0 ? 1 : shape[i])
      strides[i] = static_cast<std::int64_t>(step);
    return true;
  }
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (shape[i] == 1) strides[i] = 1;
  // From the smallest stride to the largest, each must step over everything that those before it reach.
  std::array<bool, extents::max_rank> done{};
  std::uint64_t reached = 1;
  for (std::size_t k = 0; k < shape.rank(); ++k) {
    std::size_t next = shape.rank();
    for (std::size_t i = 0; i < shape.rank(); ++i)
      if (!done[i] && (next == shape.rank() || strides[i] < strides[next] ||
                       (strides[i] == strides[next] && shape[i] < shape[next])))
        next = i;
    if (strides[next] <= 0 || static_cast<std::uint64_t>(strides[next]) < reached) return false;
    done[next] = true;
    reached = static_cast<std::uint64_t>(strides[next]) * shape[next];
  }
  return true;
}

}  // namespace penstock::inline v0_1::detail
