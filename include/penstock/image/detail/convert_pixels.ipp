// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/detail/convert_pixels.hpp>

#include <cstring>

namespace penstock::inline v0_1::detail {

#ifdef __x86_64__

// Vectors as the compilers themselves know them, see core/half.ipp.
using real_x8 [[gnu::vector_size(32)]] = float;
using int_x8 [[gnu::vector_size(32)]] = std::int32_t;
using byte_x32 [[gnu::vector_size(32)]] = char;
using byte_x16 [[gnu::vector_size(16)]] = char;
using long_x2 [[gnu::vector_size(16)]] = long long;
using byte_x8 [[gnu::vector_size(8)]] = std::uint8_t;

/// 16 bytes, and 16 others behind them.
[[gnu::target("avx2")]] inline byte_x32 load_pair(const std::uint8_t* low,
                                                  const std::uint8_t* high) noexcept {
  byte_x16 a, b;
  std::memcpy(&a, low, sizeof a);
  std::memcpy(&b, high, sizeof b);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
}
[[gnu::target("avx2")]] inline void store(float* to, real_x8 values) noexcept {
  std::memcpy(to, &values, sizeof values);
}

/// Eight bytes as whole numbers. GCC 12 makes 25 instructions of Clang's way to say it.
[[gnu::target("avx2")]] inline int_x8 widen(const std::uint8_t* from) noexcept {
  byte_x8 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
#ifdef __clang__
  return __builtin_convertvector(bytes, int_x8);
#else
  return __builtin_ia32_pmovzxbd256(
      reinterpret_cast<byte_x16>(long_x2{reinterpret_cast<long long>(bytes), 0}));
#endif
}

/// Eight values at a time; the shifts and scales of interleaved channels repeat after `Vectors` times 8.
template <std::size_t Vectors, std::size_t Channels>
[[gnu::target("avx2")]] inline std::size_t convert_row_x8(const std::uint8_t* from, float* to,
                                                          std::size_t pixels, const float* shifts,
                                                          const float* scales) noexcept {
  real_x8 shift[Vectors], scale[Vectors];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < Vectors; ++v)
#pragma GCC unroll 8
    for (std::size_t k = 0; k < 8; ++k) {
      shift[v][k] = shifts[(8 * v + k) % Channels];
      scale[v][k] = scales[(8 * v + k) % Channels];
    }
  const std::size_t values = pixels * Channels;
  std::size_t i = 0;
  for (; i + 8 * Channels <= values; i += 8 * Channels)
#pragma GCC unroll 4
    for (std::size_t v = 0; v < Channels; ++v) {
      const real_x8 whole = __builtin_convertvector(widen(from + i + 8 * v), real_x8);
      store(to + i + 8 * v, (whole - shift[v % Vectors]) * scale[v % Vectors]);
    }
  return i / Channels;
}
PENSTOCK_INLINE std::size_t convert_row_avx2(const std::uint8_t* from, float* to, std::size_t pixels,
                                             std::size_t channels, const float* shift,
                                             const float* scale) noexcept {
  if (channels == 3) return convert_row_x8<3, 3>(from, to, pixels, shift, scale);
  if (channels == 4) return convert_row_x8<1, 4>(from, to, pixels, shift, scale);
  return convert_row_x8<1, 1>(from, to, pixels, shift, scale);
}

/// Where the bytes of one channel of eight pixels are in two times 16 bytes, of which the second begin `high`
/// bytes after the first: the shuffle that makes them whole numbers of 32 bits.
template <std::size_t Channels>
constexpr std::array<char, 32> channel_bytes(std::size_t c) noexcept {
  constexpr std::size_t high = 8 * Channels - 16;
  std::array<char, 32> pick{};
  for (std::size_t k = 0; k < 8; ++k)
    for (std::size_t byte = 0; byte < 4; ++byte)
      pick[4 * k + byte] =
          byte == 0 ? static_cast<char>(k * Channels + c - (k < 4 ? 0 : high)) : static_cast<char>(-1);
  return pick;
}
template <std::size_t Channels, std::size_t C>
inline constexpr std::array<char, 32> channel_shuffle = channel_bytes<Channels>(C);

/// The shuffle, the shift and the scale of one channel.
struct plane_x8 {
  byte_x32 pick;
  real_x8 shift, scale;

  template <std::size_t Channels, std::size_t C>
  [[gnu::target("avx2")]] void set(const float* shifts, const float* scales) noexcept {
    std::memcpy(&pick, channel_shuffle<Channels, C>.data(), sizeof pick);
    shift = real_x8{} + shifts[C];
    scale = real_x8{} + scales[C];
  }
  [[gnu::target("avx2")]] void convert(byte_x32 bytes, float* to) const noexcept {
    const int_x8 whole = reinterpret_cast<int_x8>(__builtin_ia32_pshufb256(bytes, pick));
    store(to, (__builtin_convertvector(whole, real_x8) - shift) * scale);
  }
};

/// Eight pixels at a time. Reads nothing behind the pixels.
template <std::size_t Channels>
[[gnu::target("avx2")]] inline std::size_t convert_planes_x8(const std::uint8_t* from, float* to,
                                                             std::ptrdiff_t plane, std::size_t pixels,
                                                             const float* shift,
                                                             const float* scale) noexcept {
  constexpr std::size_t high = 8 * Channels - 16;
  plane_x8 red, green, blue, alpha;
  red.set<Channels, 0>(shift, scale);
  green.set<Channels, 1>(shift, scale);
  blue.set<Channels, 2>(shift, scale);
  if constexpr (Channels == 4) alpha.set<Channels, 3>(shift, scale);
  std::size_t i = 0;
  for (; i + 8 <= pixels; i += 8) {
    const byte_x32 bytes = load_pair(from + i * Channels, from + i * Channels + high);
    red.convert(bytes, to + i);
    green.convert(bytes, to + i + plane);
    blue.convert(bytes, to + i + 2 * plane);
    if constexpr (Channels == 4) alpha.convert(bytes, to + i + 3 * plane);
  }
  return i;
}
PENSTOCK_INLINE std::size_t convert_planes_avx2(const std::uint8_t* from, float* to, std::ptrdiff_t plane,
                                                std::size_t pixels, std::size_t channels, const float* shift,
                                                const float* scale) noexcept {
  if (channels == 3) return convert_planes_x8<3>(from, to, plane, pixels, shift, scale);
  return convert_planes_x8<4>(from, to, plane, pixels, shift, scale);
}

#endif

}  // namespace penstock::inline v0_1::detail
