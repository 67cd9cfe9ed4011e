// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/half.hpp>

#include <array>

/// Turns pixels of whole numbers into real numbers, interleaved or plane by plane.
///
/// Each value becomes (value - shift) * scale. A difference is never contracted with the product behind it,
/// as a product with the sum behind it may be: the results are equal on all processors, with all options of
/// all compilers, and for all ways that are here.
///
/// Measured: the portable loops have blocks of a length that compilers know, so that GCC 12 and Clang 16
/// turn them into vector code at -O2. That does for pixels that stay interleaved; to take them apart they
/// need shuffles that GCC does not find, hence the kernels for AVX2, chosen when the program runs.
namespace penstock::inline v0_1::detail {

/// A shift and a scale per channel, in the order in which they are applied.
template <std::size_t Channels, class T = float>
struct channel_map {
  std::array<T, Channels> shift, scale;
};

/// Interleaved pixels to interleaved numbers.
template <std::size_t Channels, class In>
void convert_row(const In* __restrict from, float* __restrict to, std::size_t pixels,
                 const channel_map<Channels>& map) noexcept {
  constexpr std::size_t block = 8 * Channels;
  float shift[block], scale[block];
  for (std::size_t k = 0; k < block; ++k) {
    shift[k] = map.shift[k % Channels];
    scale[k] = map.scale[k % Channels];
  }
  const std::size_t values = pixels * Channels;
  std::size_t i = 0;
  for (; i + block <= values; i += block)
    for (std::size_t k = 0; k < block; ++k)
      to[i + k] = (static_cast<float>(from[i + k]) - shift[k]) * scale[k];
  for (std::size_t k = 0; i + k < values; ++k)
    to[i + k] = (static_cast<float>(from[i + k]) - shift[k]) * scale[k];
}

/// One channel of interleaved pixels to numbers side by side.
template <std::size_t Channels, class In>
void convert_plane(const In* __restrict from, float* __restrict to, std::size_t pixels, float shift,
                   float scale) noexcept {
  constexpr std::size_t block = 8;
  std::size_t i = 0;
  for (; i + block <= pixels; i += block) {
    float values[block];
    for (std::size_t k = 0; k < block; ++k) values[k] = static_cast<float>(from[(i + k) * Channels]);
    for (std::size_t k = 0; k < block; ++k) to[i + k] = (values[k] - shift) * scale;
  }
  for (; i < pixels; ++i) to[i] = (static_cast<float>(from[i * Channels]) - shift) * scale;
}

/// Interleaved pixels to planes: channel `c` to `to + c * plane`.
template <std::size_t Channels, class In>
void convert_planes(const In* from, float* to, std::ptrdiff_t plane, std::size_t pixels,
                    const channel_map<Channels>& map) noexcept {
  if (pixels == 0) return;  // there may be no memory to point into
  for (std::size_t c = 0; c < Channels; ++c)
    convert_plane<Channels>(from + c, to + static_cast<std::ptrdiff_t>(c) * plane, pixels, map.shift[c],
                            map.scale[c]);
}

#ifdef __x86_64__
/// The kernels for AVX2, which the processor must have: as `convert_row`, for 1, 3 or 4 channels, and as
/// `convert_planes`, for 3 or 4. They return how many pixels they did, a multiple of 8.
std::size_t convert_row_avx2(const std::uint8_t* from, float* to, std::size_t pixels, std::size_t channels,
                             const float* shift, const float* scale) noexcept;
std::size_t convert_planes_avx2(const std::uint8_t* from, float* to, std::ptrdiff_t plane, std::size_t pixels,
                                std::size_t channels, const float* shift, const float* scale) noexcept;
#endif

/// The fastest way that this processor has.
template <std::size_t Channels, class In>
void convert_row_fast(const In* from, float* to, std::size_t pixels,
                      const channel_map<Channels>& map) noexcept {
  std::size_t done = 0;
  const float *const shift = map.shift.data(), *const scale = map.scale.data();
  if constexpr ((Channels == 1 || Channels == 3 || Channels == 4) &&
                requires { convert_row_avx2(from, to, pixels, Channels, shift, scale); })
    if (has_avx2()) done = convert_row_avx2(from, to, pixels, Channels, shift, scale);
  convert_row(from + done * Channels, to + done * Channels, pixels - done, map);
}
template <std::size_t Channels, class In>
void convert_planes_fast(const In* from, float* to, std::ptrdiff_t plane, std::size_t pixels,
                         const channel_map<Channels>& map) noexcept {
  std::size_t done = 0;
  const float *const shift = map.shift.data(), *const scale = map.scale.data();
  if constexpr ((Channels == 3 || Channels == 4) &&
                requires { convert_planes_avx2(from, to, plane, pixels, Channels, shift, scale); })
    if (has_avx2()) done = convert_planes_avx2(from, to, plane, pixels, Channels, shift, scale);
  convert_planes(from + done * Channels, to + done, plane, pixels - done, map);
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/image/detail/convert_pixels.ipp>
#endif
