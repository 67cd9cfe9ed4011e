// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/detail/arithmetic.hpp>

#include <array>
#include <bit>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail {

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

}  // namespace detail

/// A keyed bijection on [0, n), n <= 2^63: a shuffle that is computed, not stored.
///
/// In: an index below n (0 <= n <= 2^63) and, once, a key. Out: another index below n; `inverse` maps it
/// back. Different keys give permutations that look independent. 128 bytes, trivially copyable, no heap;
/// immutable and thread-safe.
/// Cost: about 6 ns per call in a loop, and 20 ns if each call depends on the one before, for every n from
/// 900 (docs/order.md has the table); at least twice that from 121 to 899, less below.
/// Throws `error(errc::argument)` if n is above 2^63. The index must be below n; this is not checked.
///
///     const permutation shuffled(50'000, 7);
///     for (std::uint64_t i = 0; i < shuffled.size(); ++i) read(shuffled(i));   // every sample once
///
/// How: for up to 120 indexes, a table shuffled by Fisher and Yates, because a cipher is visibly uneven on so
/// few. Above that, five rounds of a Feistel network over two digits of about sqrt(n): the low digit's base
/// is a power of two, the high digit's is the smallest that covers n, and the round adds modulo that base
/// where a Feistel network would use exclusive or (Black and Rogaway, "Ciphers with arbitrary finite
/// domains", CT-RSA 2002). A result outside [0, n) is sent through again: for any n, even just above a power
/// of two, that is less than one index in `base`. Four rounds would be a quarter cheaper, but then one key in
/// a hundred leaves neighbours visibly correlated.
class permutation {
 public:
  constexpr permutation() noexcept : table_{} {}

  constexpr permutation(std::uint64_t n, std::uint64_t key) : n_(n), table_{} {
    if (n > max_size) {
      throw error(errc::argument, {"a permutation has at most 2^63 positions, not ", n});
    }
    if (n <= table_size) {
      fill_table(key);
    } else {
      network_ = detail::digit_network::make(n, key);
    }
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return n_; }

  /// The image of index i.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t i) const noexcept {
    if (n_ < few) [[unlikely]]
      return of_few(i);
    i = network_.forward<0>(i);
    if (i >= n_) [[unlikely]]
      return walk(i);
    return i;
  }

  /// The index whose image is j.
  [[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t j) const noexcept {
    if (n_ <= table_size) {
      std::size_t i = 0;
      while (table_[i] != j && i + 1 < table_size) ++i;
      return i;
    }
    do j = n_ < few ? network_.backward<0>(network_.backward<1>(j)) : network_.backward<0>(j);
    while (j >= n_);
    return j;
  }

  static constexpr std::uint64_t max_size = std::uint64_t{1} << 63;

 private:
  static constexpr std::size_t table_size = 120;
  /// Below this many indexes, the digits are so small that a single pass leaves measurable unevenness, so
  /// there are two.
  static constexpr std::uint64_t few = 900;

  constexpr void fill_table(std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < n_; ++i) table_[i] = static_cast<std::uint8_t>(i);
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = detail::to_size(n_); i > 1; --i) {
      const std::uint64_t j = detail::multiply_high(mix64(stream + i), i);
      std::swap(table_[i - 1], table_[static_cast<std::size_t>(j)]);
    }
  }

  // These two rare paths are kept out of the caller's loop, where they would use up registers.
  [[nodiscard, gnu::noinline]] constexpr std::uint64_t walk(std::uint64_t i) const noexcept {
    while (i >= n_) i = network_.forward<0>(i);
    return i;
  }
  [[nodiscard, gnu::noinline]] constexpr std::uint64_t of_few(std::uint64_t i) const noexcept {
    if (n_ <= table_size) return table_[detail::to_size(i)];
    do i = network_.forward<1>(network_.forward<0>(i));
    while (i >= n_);
    return i;
  }

  std::uint64_t n_ = 0;
  union {
    std::array<std::uint8_t, table_size> table_;
    detail::digit_network network_;
  };
};

}  // namespace penstock::inline v0_1
