// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/image/pixels.hpp>

#include <array>
#include <string_view>

/// The affine maps behind `rotate`, `affine` and `warp`.
namespace penstock::inline v0_1 {

/// A place in an image or an offset, in pixels: x to the right, y downwards.
struct image_point {
  double x = 0;
  double y = 0;
  friend constexpr bool operator==(const image_point&, const image_point&) = default;
};

/// Where the pixels of a warped image come from: (x, y) is at (a x + b y + c, d x + e y + f) in the image
/// below. Both are offsets from the centre of their image, in pixels; torchvision's inverse affine matrix.
///
///     const warp_matrix left = {.c = 10};                      // what is 10 pixels to the right comes here
///     const image_point from = left.apply({0, 0});             // (10, 0)
struct warp_matrix {
  double a = 1, b = 0, c = 0;
  double d = 0, e = 1, f = 0;

  [[nodiscard]] constexpr image_point apply(const image_point& p) const noexcept {
    return {a * p.x + b * p.y + c, d * p.x + e * p.y + f};
  }
  /// The map in the other direction: where pixels of the image below go. Throws `errc::argument` if it has
  /// none, because the map makes a line of the plane.
  [[nodiscard]] warp_matrix inverse() const;
  friend constexpr bool operator==(const warp_matrix&, const warp_matrix&) = default;
};

/// What an affine map does, in torchvision's order: shear, scale, rotate, move; with `center` at rest but for
/// the last.
struct affine_change {
  double degrees = 0;             ///< clockwise
  image_point translate{};        ///< to the right and downwards, in pixels
  double scale = 1;               ///< above 0; 2 makes things twice as large
  std::array<double, 2> shear{};  ///< of x and of y, in degrees
  image_point center{};           ///< an offset from the image's centre
};

/// The matrix of a change. Throws `errc::argument` for numbers that are not finite, a scale that is not
/// positive and a shear of 90 degrees or more.
/// Source: torchvision 0.14, functional._get_inverse_affine_matrix (its derivation is in the comment there).
[[nodiscard]] warp_matrix matrix_of(const affine_change& change);

/// The size that holds all of an image of this size after a map without translation; torchvision's `expand`.
[[nodiscard]] image_size expanded_size(const warp_matrix& matrix, const image_size& size);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/image/warp_matrix.ipp>
#endif
