// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/image/image_work.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/values.hpp>

/// What becomes of the values of pixels, after `normalize` and conversions.
namespace penstock::inline v0_1::detail {

/// A colour as a pixel of `T`, for a number of channels that is known when it is used.
template <class T>
std::array<double, 4> colour_of(const pixel_fill& colour, std::size_t channels) {
  std::array<double, 4> found{};
  const auto take = [&](const auto& pixel) {
    for (std::size_t c = 0; c < pixel.size(); ++c) found[c] = static_cast<double>(pixel[c]);
  };
  if (channels == 1)
    take(colour.as<T, 1>());
  else if (channels == 2)
    take(colour.as<T, 2>());
  else if (channels == 3)
    take(colour.as<T, 3>());
  else
    take(colour.as<T, 4>());
  return found;
}

/// Combines operations on values as `converted_image` does: shifts and scales with 53 bits. The colour around
/// images is among the values.
class image_values {
 public:
  explicit image_values(std::size_t channels) noexcept : channels_(channels) { scale_.fill(1.0 / 255.0); }

  /// Bytes become numbers from 0 to 1, unless they are real numbers already.
  void scale_to_one() noexcept {
    if (real_) return;
    real_ = true;
    for (double& value : colour_) value /= 255.0;
  }
  template <std::size_t Channels>
  void normalize(const channel_statistics<Channels>& statistics) noexcept {
    normalize(statistics.mean.data(), statistics.std.data(), Channels);
  }
  /// Pixels of this colour are put around the image. Throws `errc::argument` if they have another one
  /// already.
  void fill(const pixel_fill& colour) {
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
  /// Writes shifts, scales and the colour for the numbers that the work makes.
  void write(image_work& work) const noexcept {
    for (std::size_t c = 0; c < channels_; ++c) {
      work.shift[c] = static_cast<float>(shift_[c]);
      work.scale[c] = static_cast<float>(scale_[c]);
      // As a pixel of that colour, so that the last bit is the same.
      const float value = filled_bytes_ ? (static_cast<float>(bytes_[c]) - work.shift[c]) * work.scale[c]
                                        : static_cast<float>(colour_[c]);
      work.fill[c] = work.number == image_number::bytes     ? static_cast<std::uint32_t>(bytes_[c])
                     : work.number == image_number::float32 ? std::bit_cast<std::uint32_t>(value)
                     : work.number == image_number::float16 ? std::uint32_t{half(value).bits()}
                                                            : std::uint32_t{bfloat16(value).bits()};
    }
  }

 private:
  using of_channels = std::array<double, 4>;

  void normalize(const double* mean, const double* std, std::size_t count) noexcept {
    scale_to_one();
    for (std::size_t c = 0; c < channels_; ++c) {
      const std::size_t own = count == 1 ? 0 : c;
      shift_[c] += mean[own] / scale_[c];
      scale_[c] /= std[own];
      colour_[c] = (colour_[c] - mean[own]) / std[own];
    }
  }

  std::size_t channels_;
  bool real_ = false;
  of_channels shift_{}, scale_{};
  bool filled_ = false, filled_bytes_ = false;
  of_channels colour_{}, bytes_{};  // as it has become; as it was given, while pixels were bytes
};

}  // namespace penstock::inline v0_1::detail
