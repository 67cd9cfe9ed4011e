// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/image/image_work.hpp>
#include <penstock/image/padded.hpp>
#include <penstock/image/values.hpp>

/// What becomes of the values of pixels, after `normalize` and conversions.
namespace penstock::inline v0_1::detail {

/// Combines operations on values as `converted_image` does: shifts and scales with 53 bits. The colour around
/// images is among the values.
class image_values {
 public:
  explicit image_values(std::size_t channels) noexcept;

  /// Bytes become numbers from 0 to 1, unless they are real numbers already.
  void scale_to_one() noexcept;
  template <std::size_t Channels>
  void normalize(const channel_statistics<Channels>& statistics) noexcept {
    normalize(statistics.mean.data(), statistics.std.data(), Channels);
  }
  /// Pixels of this colour are put around the image. Throws `errc::argument` if they have another one
  /// already.
  void fill(const pixel_fill& colour);
  /// Writes shifts, scales and the colour for the numbers that the work makes.
  void write(image_work& work) const noexcept;

 private:
  using of_channels = std::array<double, 4>;

  void normalize(const double* mean, const double* std, std::size_t count) noexcept;

  std::size_t channels_;
  bool real_ = false;
  of_channels shift_{}, scale_{};
  bool filled_ = false, filled_bytes_ = false;
  of_channels colour_{}, bytes_{};  // as it has become; as it was given, while pixels were bytes
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/device/image/image_values.ipp>
#endif
