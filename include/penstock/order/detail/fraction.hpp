// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <bit>
#include <string>
#include <string_view>

/// Fractions given by the user: strictly between 0 and 1.
namespace penstock::inline v0_1::detail {

/// A number for people, with as many digits as are needed to tell it from plausible neighbours.
[[nodiscard]] std::string fraction_text(double value);

[[nodiscard]] double checked_fraction(double fraction, std::string_view stage);

[[nodiscard]] inline std::uint64_t bits_of(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value);
}

/// floor(n * fraction) for a fraction strictly between 0 and 1, taken as written: 0.7 of 10 is 7, although
/// the double nearest to 0.7 is below it. Half a unit in the last place is added; the rest is exact.
[[nodiscard]] std::uint64_t floor_of_product(std::uint64_t n, double fraction) noexcept;

/// floor(2^64 * a / b) for a < b <= 2^63.
[[nodiscard]] constexpr std::uint64_t binary_fraction(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t quotient = 0;
  for (int bit = 0; bit < 64; ++bit) {
    a <<= 1;
    quotient <<= 1;
    if (a >= b) {
      a -= b;
      quotient |= 1;
    }
  }
  return quotient;
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/order/detail/fraction.ipp>
#endif
