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
  explicit image_places(const image_size& size) noexcept : size_(size) {
    choice_.right = size.width;
    choice_.bottom = size.height;
  }

  /// The size of the result so far.
  [[nodiscard]] const image_size& size() const noexcept { return size_; }
  image_places& mirror(mirroring how) noexcept {
    // The last pixel is now the first one, and the part in the image is as far from the other side.
    if (how == mirroring::horizontal) {
      const std::int64_t last = std::int64_t{size_.width} - 1;
      choice_.x += (choice_.mirrored & 1u) != 0 ? -last : last;
      choice_.mirrored ^= 1u;
      choice_.left = size_.width - std::exchange(choice_.right, size_.width - choice_.left);
    } else if (how == mirroring::vertical) {
      const std::int64_t last = std::int64_t{size_.height} - 1;
      choice_.y += (choice_.mirrored & 2u) != 0 ? -last : last;
      choice_.mirrored ^= 2u;
      choice_.top = size_.height - std::exchange(choice_.bottom, size_.height - choice_.top);
    }
    return *this;
  }
  /// Throws `errc::shape` if the rectangle is not within the image.
  image_places& crop(const image_part& part) {
    if (!part.within(size_))
      throw error(errc::shape,
                  {"a crop of ", part.width, " x ", part.height, " at (", part.x, ", ", part.y,
                   ") from images of ", size_.width, " x ", size_.height, "; resize or pad them first"});
    return crop(part.x, part.y, part.size());
  }
  /// The rectangle may reach beyond the image.
  image_places& crop(std::int64_t x, std::int64_t y, const image_size& size) noexcept {
    choice_.x += (choice_.mirrored & 1u) != 0 ? -x : x;
    choice_.y += (choice_.mirrored & 2u) != 0 ? -y : y;
    const auto moved = [](std::uint32_t edge, std::int64_t by, std::uint32_t maximum) {
      return static_cast<std::uint32_t>(std::clamp<std::int64_t>(std::int64_t{edge} - by, 0, maximum));
    };
    choice_.left = moved(choice_.left, x, size.width);
    choice_.right = moved(choice_.right, x, size.width);
    choice_.top = moved(choice_.top, y, size.height);
    choice_.bottom = moved(choice_.bottom, y, size.height);
    size_ = size;
    return *this;
  }
  [[nodiscard]] const image_choice& choice() const noexcept { return choice_; }

 private:
  image_size size_;
  image_choice choice_;
};

/// Throws `errc::limit` for more pixels than a kernel can number.
inline void check_kernel_size(std::uint64_t width, std::uint64_t height) {
  constexpr std::uint64_t maximum = std::uint64_t{1} << 31;  // places in an image are of 32 bits there
  if (width >= maximum || height >= maximum || width * height >= maximum)
    throw error(errc::limit, {"images of ", width, " x ", height,
                              " are too large for a kernel; make parts of them before batch"});
}
/// Throws `errc::shape` unless the column holds images of 1 to 4 channels, or of `channels` if that is not 1.
inline void check_image_column(const extents& shape, std::size_t channels) {
  const bool images = shape.rank() == 4 && shape[3] >= 1 && shape[3] <= 4;
  if (!images)
    throw error(errc::shape, {"operations on images on a device get columns of shape (slots, height, width, "
                              "channels) with 1 to 4 channels, and this one has ",
                              to_string(shape), "; decode or reshape before batch"});
  if (channels != 1 && shape[3] != channels)
    throw error(errc::shape, {"normalize has ", channels, " means and the images have ", shape[3],
                              " channels; write one mean for all, or as many as there are channels"});
  check_kernel_size(shape[2], shape[1]);
}
/// Throws `errc::argument` unless padding is of a colour.
inline void check_device_padding(padding_mode mode) {
  if (mode != padding_mode::constant)
    throw error(errc::argument,
                "on_device pads with a colour only; write the operation in a map before batch, or "
                "padding_mode::constant");
}

}  // namespace penstock::inline v0_1::detail
