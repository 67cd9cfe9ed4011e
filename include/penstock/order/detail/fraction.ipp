// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/fraction.hpp>

#include <penstock/core/error.hpp>

#include <cstdio>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string fraction_text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.12g", value);
  std::string line(digits);
  for (char& c : line)
    if (c == ',') c = '.';  // independent of the process's locale
  return line;
}

PENSTOCK_INLINE double checked_fraction(double fraction, std::string_view stage) {
  if (!(fraction > 0 && fraction < 1)) {
    throw error(errc::argument, {"the fraction ", fraction_text(fraction),
                                 " is not between 0 and 1; write 0.9 to keep nine of ten"})
        .in_stage(stage);
  }
  return fraction;
}

PENSTOCK_INLINE std::uint64_t floor_of_product(std::uint64_t n, double fraction) noexcept {
  const std::uint64_t bits = bits_of(fraction);
  const std::uint64_t exponent = bits >> 52 & 2047;
  std::uint64_t digits = (bits & ((std::uint64_t{1} << 52) - 1)) << 1 | 1;
  if (exponent != 0) digits |= std::uint64_t{1} << 53;
  // fraction = digits / 2^down, where down is at least 54; the product has 118 bits
  const std::uint64_t down = 1076 - (exponent == 0 ? 1 : exponent);
  if (down >= 118) return 0;
  std::uint64_t high = 0, low = 0;  // the product, accumulated bit by bit
  for (int bit = 53; bit >= 0; --bit) {
    high = high << 1 | low >> 63;
    low <<= 1;
    if ((digits >> bit & 1) == 0) continue;
    low += n;
    if (low < n) ++high;
  }
  return down >= 64 ? high >> (down - 64) : high << (64 - down) | low >> down;
}

}  // namespace penstock::inline v0_1::detail
