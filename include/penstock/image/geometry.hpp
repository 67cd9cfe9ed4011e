// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/flip.hpp>
#include <penstock/image/warp_matrix.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// Throws `errc::argument` unless there are 4 numbers for each box.
void check_boxes(std::span<const float> corners);

}  // namespace detail

/// What geometric operations do to the places in an image: boxes and key points move as the pixels do. A
/// value that follows the operations, from an image's size on, in the order of the operations:
/// then moves coordinates with `points`, `boxes`, or `apply`. Coordinates are in pixels from the upper left
/// corner of the image, whose lower right corner is (width, height), as in COCO and torchvision.
///
/// Operations with random numbers choose by their generator alone, so that a function with the same `key`
/// as the image's draws the same: here `random_resized_crop` for the image, and for its boxes the rectangle
/// from `choose`. The image's size must be known beside its pixels, as it is from most annotations.
///
///     const auto cropping = random_resized_crop(224);
///     const auto move_boxes = [=](const image_size& size, std::span<float> boxes, rng& random) {
///       image_geometry places(size);
///       places.crop(cropping.choose(size, random)).resize({224, 224});
///       places.boxes(boxes);                                   // x0, y0, x1, y1 of each
///       return places.clip_boxes(boxes, 4);                    // those that keep 4 square pixels, in front
///     };
///
/// Cost: no allocation; a few multiplications a coordinate.
class image_geometry {
 public:
  explicit constexpr image_geometry(const image_size& size) noexcept : size_(size) {}

  /// The size of the image after all operations.
  [[nodiscard]] constexpr const image_size& size() const noexcept { return size_; }
  /// Where places of the first image are now, in pixels from the upper left corners: (x, y) is now at
  /// (a x + b y + c, d x + e y + f).
  [[nodiscard]] constexpr const warp_matrix& matrix() const noexcept { return matrix_; }

  image_geometry& crop(const image_part& part) { return crop(part.x, part.y, part.size()); }
  /// The corner may be beyond the image, as that of `random_crop` with padding.
  image_geometry& crop(std::int64_t x, std::int64_t y, const image_size& size);
  image_geometry& resize(const image_size& size);
  image_geometry& mirror(mirroring how);
  /// `matrix` says where pixels come from, as for `warp`; `size` is that of the result. Throws
  /// `errc::argument` if it has no inverse.
  image_geometry& warp(const warp_matrix& matrix, const image_size& size);

  [[nodiscard]] constexpr image_point apply(const image_point& p) const noexcept { return matrix_.apply(p); }
  /// Moves points: x and y of each, in place; both become NaN if one is not finite. Throws `errc::argument`
  /// unless the count is even.
  void points(std::span<float> xy) const;
  /// Moves boxes: x0, y0, x1 and y1 of each, in place, with x0 <= x1 and y0 <= y1 after; a box that is
  /// turned becomes the smallest upright one around it. All numbers of a box become NaN if one is not finite.
  /// Throws `errc::argument` unless there are 4 numbers for each.
  void boxes(std::span<float> corners) const;

  /// Cuts boxes at the image's borders, removes those that keep less than `least_area` square pixels or no
  /// pixels, or have coordinates that are no numbers, and moves the others to the front in their order.
  /// Returns how many are left. `index`, if it is given, gets the old numbers of those that are left: for
  /// their labels.
  std::size_t clip_boxes(std::span<float> corners, double least_area = 0,
                         std::span<std::uint32_t> index = {}) const;
  /// Cuts boxes at the image's borders, and keeps all: one that is beyond them becomes empty, at the border.
  /// Throws `errc::argument` unless there are 4 numbers for each.
  void clamp_boxes(std::span<float> corners) const;
  /// Whether a point is in the image.
  [[nodiscard]] constexpr bool contains(const image_point& p) const noexcept {
    return p.x >= 0 && p.y >= 0 && p.x < size_.width && p.y < size_.height;
  }

 private:
  void then(const warp_matrix& next) noexcept;

  image_size size_;
  warp_matrix matrix_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/image/geometry.ipp>
#endif
