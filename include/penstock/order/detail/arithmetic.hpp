// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

namespace penstock::inline v0_1::detail {

#if defined(__SIZEOF_INT128__)
/// The upper half of the 128-bit product.
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
}
#else
/// The upper half of the 128-bit product, from four products of halves.
[[nodiscard]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}
#endif

/// Division by a constant divisor without the division instruction: multiplies by the reciprocal and corrects
/// by one. Exact for every dividend: the reciprocal is floor((2^64 - 1) / d), so the first guess is the
/// quotient or one less.
struct divider {
  struct result {
    std::uint64_t quotient, remainder;
  };

  constexpr divider() = default;
  constexpr explicit divider(std::uint64_t by) noexcept : divisor(by), reciprocal(~std::uint64_t{0} / by) {}

  [[nodiscard]] constexpr result operator()(std::uint64_t x) const noexcept {
    const std::uint64_t guess = multiply_high(x, reciprocal);
    const std::uint64_t rest = x - guess * divisor;
    const bool more = rest >= divisor;
    return {guess + (more ? 1u : 0u), rest - (more ? divisor : 0u)};
  }

  std::uint64_t divisor = 1;
  std::uint64_t reciprocal = ~std::uint64_t{0};
};

/// floor(amount * part / parts) for part <= parts < 2^32, without a wider type.
[[nodiscard]] constexpr std::uint64_t share(std::uint64_t amount, std::uint64_t part,
                                            std::uint64_t parts) noexcept {
  return amount / parts * part + amount % parts * part / parts;
}

/// The index of the last of `count` ascending numbers that is not above x; the first must not be above it. No
/// branch depends on the data.
[[nodiscard]] inline std::uint64_t last_not_above(const std::uint64_t* numbers, std::uint64_t count,
                                                  std::uint64_t x) noexcept {
  std::uint64_t base = 0;
  while (count > 1) {
    const std::uint64_t half = count / 2;
    base += half & (0 - static_cast<std::uint64_t>(numbers[base + half] <= x));
    count -= half;
  }
  return base;
}

}  // namespace penstock::inline v0_1::detail
