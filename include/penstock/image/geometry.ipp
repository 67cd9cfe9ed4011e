// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/geometry.hpp>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void check_boxes(std::span<const float> corners) {
  if (corners.size() % 4 != 0)
    throw error(errc::argument, {"boxes have the numbers x0, y0, x1 and y1 each, and there are ",
                                 corners.size(), " numbers"});
}

/// Makes all numbers of a place NaN if one is not finite, and returns whether it did: an infinite one times a
/// 0 of the matrix is NaN, so that otherwise some would be NaN and some not.
inline bool nowhere(std::span<float> place) {
  if (std::all_of(place.begin(), place.end(), [](float v) { return std::isfinite(v); })) return false;
  std::fill(place.begin(), place.end(), std::numeric_limits<float>::quiet_NaN());
  return true;
}

}  // namespace detail

PENSTOCK_INLINE image_geometry& image_geometry::crop(std::int64_t x, std::int64_t y, const image_size& size) {
  then({.c = -static_cast<double>(x), .f = -static_cast<double>(y)});
  size_ = size;
  return *this;
}

PENSTOCK_INLINE image_geometry& image_geometry::resize(const image_size& size) {
  const auto ratio = [](std::uint32_t to, std::uint32_t input) {
    return input == 0 ? 1.0 : static_cast<double>(to) / input;
  };
  then({.a = ratio(size.width, size_.width), .e = ratio(size.height, size_.height)});
  size_ = size;
  return *this;
}

PENSTOCK_INLINE image_geometry& image_geometry::mirror(mirroring how) {
  if (how == mirroring::horizontal) then({.a = -1, .c = static_cast<double>(size_.width)});
  if (how == mirroring::vertical) then({.e = -1, .f = static_cast<double>(size_.height)});
  return *this;
}

PENSTOCK_INLINE image_geometry& image_geometry::warp(const warp_matrix& matrix, const image_size& size) {
  const warp_matrix forwards = matrix.inverse();
  then({.c = -0.5 * size_.width, .f = -0.5 * size_.height});
  then(forwards);
  then({.c = 0.5 * size.width, .f = 0.5 * size.height});
  size_ = size;
  return *this;
}

PENSTOCK_INLINE void image_geometry::points(std::span<float> xy) const {
  if (xy.size() % 2 != 0)
    throw error(errc::argument, {"key points have an x and a y each, and there are ", xy.size(), " numbers"});
  for (std::size_t i = 0; i < xy.size(); i += 2) {
    if (detail::nowhere(xy.subspan(i, 2))) continue;
    const image_point p = apply({static_cast<double>(xy[i]), static_cast<double>(xy[i + 1])});
    xy[i] = static_cast<float>(p.x), xy[i + 1] = static_cast<float>(p.y);
  }
}

PENSTOCK_INLINE void image_geometry::boxes(std::span<float> corners) const {
  detail::check_boxes(corners);
  for (std::size_t i = 0; i < corners.size(); i += 4) {
    if (detail::nowhere(corners.subspan(i, 4))) continue;
    float* const box = corners.data() + i;
    const double x[] = {static_cast<double>(box[0]), static_cast<double>(box[2])};
    const double y[] = {static_cast<double>(box[1]), static_cast<double>(box[3])};
    image_point low = apply({x[0], y[0]}), high = low;
    for (int k = 1; k < 4; ++k) {
      const image_point p = apply({x[k % 2], y[k / 2]});
      low = {std::min(low.x, p.x), std::min(low.y, p.y)};
      high = {std::max(high.x, p.x), std::max(high.y, p.y)};
    }
    box[0] = static_cast<float>(low.x), box[1] = static_cast<float>(low.y);
    box[2] = static_cast<float>(high.x), box[3] = static_cast<float>(high.y);
  }
}

PENSTOCK_INLINE std::size_t image_geometry::clip_boxes(std::span<float> corners, double least_area,
                                                       std::span<std::uint32_t> index) const {
  const std::size_t count = corners.size() / 4;
  if (corners.size() % 4 != 0 || (!index.empty() && index.size() < count))
    throw error(errc::argument,
                "clip_boxes takes the numbers x0, y0, x1 and y1 of each box, and room for a number of each");
  const auto width = static_cast<float>(size_.width), height = static_cast<float>(size_.height);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float* const box = corners.data() + 4 * i;
    const float x0 = std::max(box[0], 0.0f), y0 = std::max(box[1], 0.0f);
    const float x1 = std::min(box[2], width), y1 = std::min(box[3], height);
    const bool numbers = box[0] <= box[2] && box[1] <= box[3];  // false if one is none
    if (!numbers || !(x0 < x1 && y0 < y1) ||
        static_cast<double>(x1 - x0) * static_cast<double>(y1 - y0) < least_area)
      continue;
    float* const to = corners.data() + 4 * kept;
    to[0] = x0, to[1] = y0, to[2] = x1, to[3] = y1;
    if (!index.empty()) index[kept] = static_cast<std::uint32_t>(i);
    ++kept;
  }
  return kept;
}

PENSTOCK_INLINE void image_geometry::clamp_boxes(std::span<float> corners) const {
  detail::check_boxes(corners);
  const float maximum[] = {static_cast<float>(size_.width), static_cast<float>(size_.height)};
  for (std::size_t i = 0; i < corners.size(); ++i) corners[i] = std::clamp(corners[i], 0.0f, maximum[i % 2]);
}

PENSTOCK_INLINE void image_geometry::then(const warp_matrix& next) noexcept {
  const warp_matrix& m = matrix_;
  matrix_ = {next.a * m.a + next.b * m.d, next.a * m.b + next.b * m.e, next.a * m.c + next.b * m.f + next.c,
             next.d * m.a + next.e * m.d, next.d * m.b + next.e * m.e, next.d * m.c + next.e * m.f + next.f};
}

}  // namespace penstock::inline v0_1
