// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/order/detail/wide.hpp>

#include <bit>
#include <charconv>
#include <iterator>

/// Fractions given by the user: strictly between 0 and 1.
namespace penstock::inline v0_1::detail {

/// A number for people, with as many digits as are needed to tell it from plausible neighbours.
[[nodiscard]] inline std::string fraction_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, std::end(digits), value, std::chars_format::general, 12).ptr};
}

[[nodiscard]] inline double checked_fraction(double fraction, std::string_view stage) {
  if (!(fraction > 0 && fraction < 1)) {
    throw error(errc::argument, {"the fraction ", fraction_text(fraction),
                                 " is not between 0 and 1; write 0.9 to keep nine of ten"})
        .in_stage(stage);
  }
  return fraction;
}

[[nodiscard]] inline std::uint64_t bits_of(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value);
}

/// floor(n * fraction) for a fraction strictly between 0 and 1, taken as written: 0.7 of 10 is 7, although
/// the double nearest to 0.7 is below it. Half a unit in the last place is added; the rest is exact.
[[nodiscard]] inline std::uint64_t floor_of_product(std::uint64_t n, double fraction) noexcept {
  const std::uint64_t bits = bits_of(fraction);
  const std::uint64_t exponent = bits >> 52 & 2047;
  std::uint64_t digits = (bits & ((std::uint64_t{1} << 52) - 1)) << 1 | 1;
  if (exponent != 0) digits |= std::uint64_t{1} << 53;
  // fraction = digits / 2^down, where down is at least 54; the product has 118 bits
  const std::uint64_t down = 1076 - (exponent == 0 ? 1 : exponent);
  if (down >= 118) return 0;
  const auto [high, low] = product(digits, n);
  return down >= 64 ? high >> (down - 64) : high << (64 - down) | low >> down;
}

/// floor(2^64 * a / b) for a < b <= 2^63.
[[nodiscard]] constexpr std::uint64_t binary_fraction(std::uint64_t a, std::uint64_t b) noexcept {
  return divide({a, 0}, b).quotient;
}

}  // namespace penstock::inline v0_1::detail
