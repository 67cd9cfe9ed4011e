// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/image/interpolation.hpp>

/// The weights of a resampler, for one direction of an image.
namespace penstock::inline v0_1::detail {

/// The bits of a weight that are behind the point.
inline constexpr int weight_bits = 22;
/// What a sum of weighted bytes begins with, so that it is rounded.
inline constexpr std::int32_t half_weight = 1 << (weight_bits - 1);
/// The bits of the lower of its two halves.
inline constexpr int low_weight_bits = 11;

struct index_interval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// One direction of a resampled image: `from` pixels become `to` pixels, of which `count` are wanted, from
/// `first` on.
struct resample_axis {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  interpolation how = interpolation::bilinear;
  bool antialias = true;
  bool mirrored = false;  ///< the wanted pixels in the opposite order
  /// What becomes `to` pixels, with antialias: from a point of the source on, so much of it; 0 is all.
  double begin = 0, length = 0;

  friend bool operator==(const resample_axis&, const resample_axis&) = default;

  [[nodiscard]] bool same() const noexcept { return from == to && (length == 0 || length == from); }
  /// The pixels of the source that the wanted ones depend on. Never empty.
  [[nodiscard]] index_interval needed() const;
  /// How many weights a wanted pixel has at most.
  [[nodiscard]] std::uint32_t max_taps() const;
};

/// Which pixel of `from` is the nearest to pixel `i` of `to`, as PyTorch computes it, in 32 bits.
[[nodiscard]] inline std::uint32_t nearest_index(std::uint32_t i, std::uint32_t from, std::uint32_t to) {
  if (from == to) return i;
  const float scale = static_cast<float>(from) / static_cast<float>(to);
  const auto at = static_cast<std::uint32_t>(static_cast<float>(i) * scale);
  return at < from ? at : from - 1;
}

/// The weights of one direction. Pixel i of the result is the sum of `used[i]` pixels from `start[i]` on,
/// times the weights from `i * taps` on; `taps` is even, or a multiple of 8, and the weights beyond `used[i]`
/// are 0.
/// There are weights for a multiple of 4 pixels.
struct weight_table {
  const std::int32_t* start = nullptr;
  const std::int32_t* used = nullptr;
  const std::int32_t* weight = nullptr;
  const std::int16_t* high = nullptr;  ///< weight >> low_weight_bits
  const std::int16_t* low = nullptr;   ///< the other bits, not negative
  std::uint32_t count = 0;
  std::uint32_t taps = 0;
  std::uint32_t maximum = 0;  ///< the largest of `used`
};
struct weight_tables {
  weight_table across;
  weight_table down;
};

/// The weights of both directions, in `room`, which nothing else uses: they are computed only if they differ
/// from those of the last time. `eights`: for the columns, a multiple of 8 taps.
[[nodiscard]] weight_tables weights_of(const resample_axis& across, const resample_axis& down, bool eights,
                                       buffer& room);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/image/detail/resample_weights.ipp>
#endif
