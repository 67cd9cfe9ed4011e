// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>

namespace penstock::inline v0_1::detail {

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
