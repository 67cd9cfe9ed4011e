// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <bit>

/// Real numbers of 16 bits for batches: an accelerator computes with them, the host only stores them.
namespace penstock::inline v0_1 {

/// IEEE 754 binary16: 1 bit of sign, 5 of exponent, 11 of precision; largest finite value 65,504. Two bytes.
/// Construct it from a `float`, rounded to the nearest (ties to even; too large becomes infinite); it
/// converts to `float` without loss, so that you compute and compare in `float`.
///
///     const half third(1.0f / 3.0f);
///     const bool close = third > 0.333f && third < 0.334f;
class half {
 public:
  half() = default;
  constexpr explicit half(float value) noexcept : bits_(bits_of(value)) {}
  /// The number with these bits.
  [[nodiscard]] static constexpr half from_bits(std::uint16_t bits) noexcept {
    half one(0.0f);
    one.bits_ = bits;
    return one;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  constexpr operator float() const noexcept {
    const std::uint32_t sign = (std::uint32_t{bits_} & 0x8000u) << 16;
    const std::uint32_t rest = std::uint32_t{bits_} & 0x7fffu;
    const float small = static_cast<float>(static_cast<std::int32_t>(rest)) * 0x1p-24f;
    const std::uint32_t normal = (rest << 13) + (112u << 23);
    const std::uint32_t finite = choose(rest < 0x400u, std::bit_cast<std::uint32_t>(small), normal);
    // A NaN becomes quiet, as by the processors' instructions.
    const std::uint32_t large = 0x7f800000u | (rest & 0x3ffu) << 13 | choose(rest > 0x7c00u, 0x400000u, 0);
    return std::bit_cast<float>(sign | choose(rest < 0x7c00u, finite, large));
  }

 private:
  static constexpr std::uint32_t choose(bool which, std::uint32_t yes, std::uint32_t no) noexcept {
    const std::uint32_t mask = 0u - static_cast<std::uint32_t>(which);
    return (yes & mask) | (no & ~mask);
  }
  // Without a branch, so that loops over arrays become vector code.
  static constexpr std::uint16_t bits_of(float value) noexcept {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & 0x7fffffffu;
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfffu + odd) >> 13;
    // The last bit of 0.5f is worth 2^-24, as that of a subnormal half: the sum rounds where it must.
    const bool subnormal = magnitude < 0x38800000u;
    const float sum = std::bit_cast<float>(choose(subnormal, magnitude, 0)) + 0.5f;
    const std::uint32_t small = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f);
    const std::uint32_t finite = choose(subnormal, small, normal);
    const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    const std::uint32_t large = choose(magnitude > 0x7f800000u, nan, 0x7c00u);
    return static_cast<std::uint16_t>((all >> 16 & 0x8000u) | choose(magnitude < 0x47800000u, finite, large));
  }

  std::uint16_t bits_;
};

/// The upper half of a `float`: its range, 8 bits of precision. Two bytes. Construct it from a `float`,
/// rounded to the nearest (ties to even; too large becomes infinite); it converts to `float` without loss.
///
///     const bfloat16 third(1.0f / 3.0f);
///     const bool close = third > 0.333f && third < 0.335f;
class bfloat16 {
 public:
  bfloat16() = default;
  constexpr explicit bfloat16(float value) noexcept : bits_(bits_of(value)) {}
  /// The number with these bits.
  [[nodiscard]] static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 one(0.0f);
    one.bits_ = bits;
    return one;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  constexpr operator float() const noexcept { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

 private:
  static constexpr std::uint16_t bits_of(float value) noexcept {
    const std::uint32_t all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (all >> 16) | 0x40u;
    const std::uint32_t nan = 0u - static_cast<std::uint32_t>((all & 0x7fffffffu) > 0x7f800000u);
    return static_cast<std::uint16_t>((quiet & nan) | (rounded & ~nan));
  }

  std::uint16_t bits_;
};

/// Converts `count` numbers, each as the constructor does. The arrays must not overlap. With the processor's
/// own instructions where it has them (F16C), otherwise with vector code of integers; the bits are equal.
void convert(const float* from, half* to, std::size_t count) noexcept;
void convert(const float* from, bfloat16* to, std::size_t count) noexcept;
void convert(const half* from, float* to, std::size_t count) noexcept;
void convert(const bfloat16* from, float* to, std::size_t count) noexcept;

namespace detail {

/// The conversions without special instructions.
void convert_portably(const float* from, half* to, std::size_t count) noexcept;
void convert_portably(const half* from, float* to, std::size_t count) noexcept;
/// Whether this processor has AVX2 and F16C; asks it once.
[[nodiscard]] bool has_avx2() noexcept;

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/half.ipp>
#endif
