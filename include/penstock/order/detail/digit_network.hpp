// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>

#include <array>
#include <bit>

namespace penstock::inline v0_1::detail {

/// A keyed bijection on slightly more than [0, n), n > 3: a Feistel network over a low digit whose base is a
/// power of two and a high digit in `base`. `forward<0>` has five rounds; where digits are small,
/// `forward<1>` after it adds five more with keys of their own.
struct digit_network {
  static constexpr std::size_t rounds = 5;

  std::uint64_t base;  // of the high digit
  std::uint64_t mask;  // of the low digit
  std::uint32_t bits;  // of the low digit
  std::uint64_t offset, slope;
  std::array<std::uint64_t, 2 * rounds> keys;

  [[nodiscard]] static constexpr digit_network make(std::uint64_t n, std::uint64_t key) noexcept {
    digit_network made{};
    made.bits = static_cast<std::uint32_t>(std::bit_width(n - 1)) / 2;
    made.mask = (std::uint64_t{1} << made.bits) - 1;
    made.base = ((n - 1) >> made.bits) + 1;
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = 0; i < made.keys.size(); ++i) made.keys[i] = mix64(stream + i) | 1;
    made.offset = mix64(stream + made.keys.size());
    made.slope = mix64(stream + made.keys.size() + 1) | 1;
    return made;
  }

  /// The number by which a round multiplies a digit.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t factor() const noexcept {
    return keys[Pass * rounds + Round];
  }
  /// The number that a round adds to the product. One constant is enough to keep two digits of 0 from passing
  /// all rounds unchanged. The second pass, used where digits are so small that 0 is frequent, adds the keys
  /// of the first one.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t constant() const noexcept {
    if constexpr (Pass == 1) return keys[Round];
    return Round == 1 ? offset : 0;
  }
  /// The number added to the high digit. The halves of the product are folded: each half alone grows in equal
  /// steps as the digit does, and without the fold such steps are visible in the result.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t high_step(std::uint64_t low) const noexcept {
    const std::uint64_t product = low * factor<Pass, Round>() + constant<Pass, Round>();
    return static_cast<std::uint32_t>(product ^ product >> 32) * base >> 32;
  }
  /// The bits flipped in the low digit. Equal steps do no harm here.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t low_step(std::uint64_t high) const noexcept {
    return (high * factor<Pass, Round>() + constant<Pass, Round>()) >> 32 & mask;
  }
  /// Keeps indexes with equal low digits from passing the first round in step.
  [[nodiscard]] constexpr std::uint64_t slant(std::uint64_t high) const noexcept { return high * slope; }

  [[nodiscard]] constexpr std::uint64_t plus(std::uint64_t high, std::uint64_t step) const noexcept {
    const std::uint64_t sum = high + step, wrapped = sum - base;
    return sum < base ? sum : wrapped;
  }
  [[nodiscard]] constexpr std::uint64_t minus(std::uint64_t high, std::uint64_t step) const noexcept {
    return high < step ? high + base - step : high - step;
  }

  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> bits;
    std::uint64_t low = (x + slant(high)) & mask;
    high = plus(high, high_step<Pass, 0>(low));
    low ^= low_step<Pass, 1>(high);
    high = plus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 3>(high);
    high = plus(high, high_step<Pass, 4>(low));
    return high * (mask + 1) + low;  // cheaper than a variable shift
  }
  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t backward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> bits;
    std::uint64_t low = x & mask;
    high = minus(high, high_step<Pass, 4>(low));
    low ^= low_step<Pass, 3>(high);
    high = minus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 1>(high);
    high = minus(high, high_step<Pass, 0>(low));
    return high << bits | ((low - slant(high)) & mask);
  }
};

}  // namespace penstock::inline v0_1::detail
