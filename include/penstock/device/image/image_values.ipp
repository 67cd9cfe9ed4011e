// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/image/image_values.hpp>

namespace penstock::inline v0_1::detail {

/// A colour as a pixel of `T`, for a number of channels that is known when it is used.
template <class T>
std::array<double, 4> colour_of(const pixel_fill& colour, std::size_t channels) {
  std::array<double, 4> found{};
  const auto take = [&](const auto& pixel) {
    for (std::size_t c = 0; c < pixel.size(); ++c) found[c] = static_cast<double>(pixel[c]);
  };
  switch (channels) {
    case 1:
      take(colour.as<T, 1>());
      break;
    case 2:
      take(colour.as<T, 2>());
      break;
    case 3:
      take(colour.as<T, 3>());
      break;
    default:
      take(colour.as<T, 4>());
  }
  return found;
}

PENSTOCK_INLINE image_values::image_values(std::size_t channels) noexcept : channels_(channels) {
  scale_.fill(1.0 / 255.0);
}

PENSTOCK_INLINE void image_values::scale_to_one() noexcept {
  if (real_) return;
  real_ = true;
  for (double& value : colour_) value /= 255.0;
}

PENSTOCK_INLINE void image_values::normalize(const double* mean, const double* std,
                                             std::size_t count) noexcept {
  scale_to_one();
  for (std::size_t c = 0; c < channels_; ++c) {
    const std::size_t own = count == 1 ? 0 : c;
    shift_[c] += mean[own] / scale_[c];
    scale_[c] /= std[own];
    colour_[c] = (colour_[c] - mean[own]) / std[own];
  }
}

PENSTOCK_INLINE void image_values::fill(const pixel_fill& colour) {
  const of_channels wanted =
      real_ ? colour_of<float>(colour, channels_) : colour_of<std::uint8_t>(colour, channels_);
  if (filled_ && wanted != colour_)
    throw error(errc::argument,
                "two operations of one on_device pad with different colours; write the first one in a map "
                "before batch");
  filled_ = true;
  colour_ = wanted;
  if (real_) return;
  filled_bytes_ = true;
  bytes_ = wanted;
}

PENSTOCK_INLINE void image_values::write(image_work& work) const noexcept {
  for (std::size_t c = 0; c < channels_; ++c) {
    work.shift[c] = static_cast<float>(shift_[c]);
    work.scale[c] = static_cast<float>(scale_[c]);
    // As a pixel of that colour, so that the last bit is the same.
    const float value = filled_bytes_ ? (static_cast<float>(bytes_[c]) - work.shift[c]) * work.scale[c]
                                      : static_cast<float>(colour_[c]);
    switch (work.number) {
      case image_number::bytes:
        work.fill[c] = static_cast<std::uint32_t>(bytes_[c]);
        break;
      case image_number::float32:
        work.fill[c] = std::bit_cast<std::uint32_t>(value);
        break;
      case image_number::float16:
        work.fill[c] = half(value).bits();
        break;
      default:
        work.fill[c] = bfloat16(value).bits();
    }
  }
}

}  // namespace penstock::inline v0_1::detail
