// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/arithmetic.hpp>

#include <bit>

namespace penstock::inline v0_1::detail {

/// A 128-bit number in two words, with only the arithmetic that exact sums of weights times samples need.
struct wide {
  std::uint64_t high = 0, low = 0;

  friend constexpr bool operator==(const wide&, const wide&) = default;
  friend constexpr bool operator<(wide a, wide b) noexcept {
    return a.high != b.high ? a.high < b.high : a.low < b.low;
  }
  friend constexpr wide operator+(wide a, wide b) noexcept {
    const std::uint64_t sum = a.low + b.low;
    return {a.high + b.high + (sum < a.low ? 1u : 0u), sum};
  }
  friend constexpr wide operator-(wide a, wide b) noexcept {
    return {a.high - b.high - (a.low < b.low ? 1u : 0u), a.low - b.low};
  }
};

[[nodiscard]] constexpr wide product(std::uint64_t a, std::uint64_t b) noexcept {
  return {multiply_high(a, b), a * b};
}

/// Divides 128 bits by 64, without a wider type. Source: Knuth, "The Art of Computer Programming" 4.3.1,
/// algorithm D, with 32-bit digits. The quotient must fit: n.high < d.
[[nodiscard]] constexpr divider::result divide_in_halves(wide n, std::uint64_t d) noexcept {
  const int shift = std::countl_zero(d);
  d <<= shift;
  const std::uint64_t top = shift == 0 ? n.high : n.high << shift | n.low >> (64 - shift);
  const std::uint64_t rest = n.low << shift;
  const std::uint64_t d1 = d >> 32, d0 = d & 0xffffffffu;
  const auto digit = [d, d1, d0](std::uint64_t above, std::uint64_t next) {
    std::uint64_t guess = above / d1, left = above - guess * d1;
    while (guess >> 32 != 0 || guess * d0 > (left << 32 | next)) {
      --guess;
      left += d1;
      if (left >> 32 != 0) break;
    }
    return divider::result{guess, (above << 32 | next) - guess * d};
  };
  const auto first = digit(top, rest >> 32);
  const auto second = digit(first.remainder, rest & 0xffffffffu);
  return {first.quotient << 32 | second.quotient, second.remainder >> shift};
}

/// n / d and the remainder. The quotient must fit: n.high < d.
[[nodiscard]] constexpr divider::result divide(wide n, std::uint64_t d) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ using integer = unsigned __int128;
  const integer whole = static_cast<integer>(n.high) << 64 | n.low;
  const auto quotient = static_cast<std::uint64_t>(whole / d);
  return {quotient, n.low - quotient * d};
#else
  return divide_in_halves(n, d);
#endif
}

}  // namespace penstock::inline v0_1::detail
