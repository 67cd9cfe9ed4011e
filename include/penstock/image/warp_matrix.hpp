// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/image/pixels.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

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
  [[nodiscard]] warp_matrix inverse() const {
    const double det = a * e - b * d;
    if (!(std::isnormal(det)))
      throw error(errc::argument, "this map of an image has no inverse: it makes a line of the plane");
    const warp_matrix back{e / det, -b / det, 0, -d / det, a / det, 0};
    return {back.a, back.b, -(back.a * c + back.b * f), back.d, back.e, -(back.d * c + back.e * f)};
  }
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
[[nodiscard]] inline warp_matrix matrix_of(const affine_change& change) {
  const double numbers[] = {change.degrees,  change.translate.x, change.translate.y, change.scale,
                            change.shear[0], change.shear[1],    change.center.x,    change.center.y};
  for (const double x : numbers)
    if (!std::isfinite(x)) throw error(errc::argument, "an affine change of an image needs finite numbers");
  if (!(change.scale > 0 && std::isfinite(1 / change.scale)))
    throw error(errc::argument, "an affine change of an image needs a scale above 0");
  if (!(std::abs(change.shear[0]) < 90 && std::abs(change.shear[1]) < 90))
    throw error(errc::argument, "an affine change of an image needs shears between -90 and 90 degrees");

  constexpr double radians = std::numbers::pi / 180;
  const double turn = change.degrees * radians;
  const double shear_x = change.shear[0] * radians, shear_y = change.shear[1] * radians;
  // rotation and shear, forwards
  const double cosine = std::cos(turn - shear_y) / std::cos(shear_y);
  const double sine = std::sin(turn - shear_y) / std::cos(shear_y);
  const double slant = std::tan(shear_x);
  const double a = cosine, b = -cosine * slant - std::sin(turn);
  const double c = sine, d = -sine * slant + std::cos(turn);
  // backwards: their determinant is 1
  const double s = 1 / change.scale;
  warp_matrix made{d * s, -b * s, 0, -c * s, a * s, 0};
  const image_point input{change.center.x + change.translate.x, change.center.y + change.translate.y};
  made.c = change.center.x - (made.a * input.x + made.b * input.y);
  made.f = change.center.y - (made.d * input.x + made.e * input.y);
  return made;
}

/// The size that holds all of an image of this size after a map without translation; torchvision's `expand`.
[[nodiscard]] inline image_size expanded_size(const warp_matrix& matrix, const image_size& size) {
  const float a = static_cast<float>(matrix.a), b = static_cast<float>(matrix.b);
  const float d = static_cast<float>(matrix.d), e = static_cast<float>(matrix.e);
  const float half_width = 0.5f * static_cast<float>(size.width);
  const float half_height = 0.5f * static_cast<float>(size.height);
  // of a rectangle around 0: the corners are at plus and minus these
  const auto length = [](float reach, float half) {
    constexpr float step = 1e-4f;  // torchvision's: what is less than this beyond a pixel needs no new one
    const float maximum = std::ceil(std::trunc((half + reach) / step) * step);
    const float least = std::floor(std::trunc((half - reach) / step) * step);
    if (!(maximum - least < static_cast<float>(std::numeric_limits<std::int32_t>::max())))
      throw error(errc::limit, "an image becomes too large when it is turned with expand");
    return static_cast<std::uint32_t>(maximum - least);
  };
  return {length(std::abs(a) * half_width + std::abs(b) * half_height, half_width),
          length(std::abs(d) * half_width + std::abs(e) * half_height, half_height)};
}

}  // namespace penstock::inline v0_1
