// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/image/image_work.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/padded.hpp>

/// Where the pixels of an image come from, after flips and crops.
namespace penstock::inline v0_1::detail {

/// Follows geometric operations on an image, as `image_geometry` does with places in it: each pixel of the
/// result is one of the image, or lies around it.
class image_places {
 public:
  explicit image_places(const image_size& size) noexcept;

  /// The size of the result so far.
  [[nodiscard]] const image_size& size() const noexcept { return size_; }
  image_places& mirror(mirroring how) noexcept;
  /// Throws `errc::shape` if the rectangle is not within the image.
  image_places& crop(const image_part& part);
  /// The rectangle may reach beyond the image.
  image_places& crop(std::int64_t x, std::int64_t y, const image_size& size) noexcept;
  [[nodiscard]] const image_choice& choice() const noexcept { return choice_; }

 private:
  image_size size_;
  image_choice choice_;
};

/// Throws `errc::shape` unless the column holds images of 1 to 4 channels, or of `channels` if that is not 1.
void check_image_column(const extents& shape, std::size_t channels);
/// Throws `errc::limit` for more pixels than a kernel can number.
void check_kernel_size(std::uint64_t width, std::uint64_t height);
/// Throws `errc::argument` unless padding is of a colour.
void check_device_padding(padding_mode mode);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/device/image/image_places.ipp>
#endif
