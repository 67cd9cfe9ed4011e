// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/tensor.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string to_string(const extents& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    detail::append(text, {shape[i]});
    text += i + 1 < shape.rank() ? ", " : (shape.rank() == 1 ? "," : "");
  }
  return text + ")";
}

namespace detail {

PENSTOCK_INLINE std::uint64_t rows_of(const extents& shape) {
  constexpr std::uint64_t max_empty_rows = 65'536;
  if (shape[0] > max_empty_rows && shape.elements() == 0)
    throw error(errc::limit, {"an array of shape ", to_string(shape), " has no elements, and more than ",
                              max_empty_rows, " rows"});
  return shape[0];
}

PENSTOCK_INLINE void refuse_element(const extents& shape) {
  throw error(errc::shape, {"a row of shape ", to_string(shape),
                            " was used as an element; write v(i, j) for an element, or loop over v.flat()"});
}

PENSTOCK_INLINE void refuse_mdspan(const extents& shape, std::string_view fault) {
  throw error(errc::shape,
              {"an array of shape ", to_string(shape), " does not fit this std::mdspan: it has ", fault});
}

}  // namespace detail

}  // namespace penstock::inline v0_1
