// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/warp.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void check_warp(std::string_view function, interpolation how) {
  if (how != interpolation::nearest && how != interpolation::bilinear)
    throw error(errc::argument, {function, " interpolates nearest or bilinear, and not ", to_string(how)});
}

PENSTOCK_INLINE image_part warp_source(const warp_matrix& matrix, const image_size& from,
                                       const image_size& to, const image_part& part) {
  if (part.width == 0 || part.height == 0 || from.width == 0 || from.height == 0) return {};
  const double left = part.x + 0.5 - 0.5 * to.width, right = left + part.width - 1;
  const double top = part.y + 0.5 - 0.5 * to.height, bottom = top + part.height - 1;
  // the pixels from one that is below all places to one that is above, and one more for rounding
  const auto range = [](double a, double b, double shift, double x0, double x1, double y0, double y1,
                        std::uint32_t length, std::uint32_t& first, std::uint32_t& count) {
    const double middle = shift + 0.5 * length - 0.5;
    const double low = std::fmin(a * x0, a * x1) + std::fmin(b * y0, b * y1) + middle - 2;
    const double high = std::fmax(a * x0, a * x1) + std::fmax(b * y0, b * y1) + middle + 2;
    if (!(high >= 0 && low <= length - 1.0)) return false;
    first = low > 0 ? static_cast<std::uint32_t>(low) : 0;
    const std::uint32_t last = high < length - 1.0 ? static_cast<std::uint32_t>(high) : length - 1;
    count = last - first + 1;
    return true;
  };
  image_part needed;
  if (!range(matrix.a, matrix.b, matrix.c, left, right, top, bottom, from.width, needed.x, needed.width) ||
      !range(matrix.d, matrix.e, matrix.f, left, right, top, bottom, from.height, needed.y, needed.height))
    return {};
  return needed;
}

}  // namespace detail

PENSTOCK_INLINE warp_operation::warp_operation(const warp_matrix& matrix, const warp_options& options)
    : matrix_(matrix), options_(options) {
  detail::check_warp("warp", options.how);
  for (const double x : {matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f})
    if (!std::isfinite(x)) throw error(errc::argument, "warp: the numbers of a matrix must be finite");
}

}  // namespace penstock::inline v0_1
