// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/detail/arithmetic.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {

/// A keyed bijection on [0, n), n <= 2^63: a shuffle that is computed and not stored.
///
/// In: an index below n (0 <= n <= 2^63) and, once, a key. Out: another index below n; `inverse` turns it round. Different keys give
/// permutations that look independent. 128 bytes, trivially copyable, no heap; immutable, so any number of threads may use it.
/// Cost: about 6.5 ns a call in a loop and 20 ns where each call waits for the one before, at every n above 900 (docs/order.md has the
/// table); twice that below.
/// Throws `error(errc::argument)` when n is above 2^63. An index that is not below n is the caller's mistake and is not checked.
///
///     const penstock::permutation shuffled(50'000, 7);
///     for (std::uint64_t i = 0; i < shuffled.size(); ++i) read(shuffled(i));   // every sample once
///
/// How: up to 120 indices, a table shuffled by Fisher and Yates, since a cipher is visibly uneven on so few. Above, five rounds of a
/// Feistel network over two digits of about sqrt(n), the low one a power of two, the high one of the smallest base that covers n: it
/// adds modulo that base where a Feistel network has its exclusive or (Black and Rogaway, "Ciphers with arbitrary finite domains",
/// CT-RSA 2002). What lands outside [0, n) is sent through again: at any n, also just above a power of two, that is less than one
/// index in `base`. Four rounds would be a quarter cheaper; one key in a hundred then leaves neighbours visibly correlated.
class permutation {
 public:
  constexpr permutation() noexcept : table_{} {}

  constexpr permutation(std::uint64_t n, std::uint64_t key) : n_(n), table_{} {
    if (n > max_size) {
      throw error(errc::argument, "a permutation has at most 2^63 positions, not " + std::to_string(n));
    }
    if (n <= table_size) {
      fill_table(key);
    } else {
      network_ = make_network(key);
    }
  }

  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return n_; }

  /// Where index i goes.
  [[nodiscard]] constexpr std::uint64_t operator()(std::uint64_t i) const noexcept {
    if (n_ < few) [[unlikely]] return of_few(i);
    i = forward<0>(i);
    if (i >= n_) [[unlikely]] return walk(i);
    return i;
  }

  /// Which index goes to j.
  [[nodiscard]] constexpr std::uint64_t inverse(std::uint64_t j) const noexcept {
    if (n_ <= table_size) {
      std::size_t i = 0;
      while (table_[i] != j && i + 1 < table_size) ++i;
      return i;
    }
    do j = n_ < few ? backward<0>(backward<1>(j)) : backward<0>(j);
    while (j >= n_);
    return j;
  }

  static constexpr std::uint64_t max_size = std::uint64_t{1} << 63;

 private:
  static constexpr std::size_t table_size = 120;
  /// Below this many indices the digits are so small that one pass leaves a measurable unevenness: two are made.
  static constexpr std::uint64_t few = 900;
  static constexpr std::size_t rounds = 5;

  struct network {
    std::uint64_t base;  // of the high digit
    std::uint64_t mask;  // of the low digit
    std::uint32_t bits;  // of the low digit
    std::uint64_t offset, slope;
    std::array<std::uint64_t, 2 * rounds> keys;
  };

  constexpr void fill_table(std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < n_; ++i) table_[i] = static_cast<std::uint8_t>(i);
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = static_cast<std::size_t>(n_); i > 1; --i) {
      const std::uint64_t j = detail::multiply_high(mix64(stream + i), i);
      std::swap(table_[i - 1], table_[static_cast<std::size_t>(j)]);
    }
  }

  [[nodiscard]] constexpr network make_network(std::uint64_t key) const noexcept {
    network made{};
    made.bits = static_cast<std::uint32_t>(std::bit_width(n_ - 1)) / 2;
    made.mask = (std::uint64_t{1} << made.bits) - 1;
    made.base = ((n_ - 1) >> made.bits) + 1;
    const std::uint64_t stream = mix64(key);
    for (std::size_t i = 0; i < made.keys.size(); ++i) made.keys[i] = mix64(stream + i) | 1;
    made.offset = mix64(stream + made.keys.size());
    made.slope = mix64(stream + made.keys.size() + 1) | 1;
    return made;
  }

  [[nodiscard]] constexpr std::uint64_t walk(std::uint64_t i) const noexcept {
    while (i >= n_) i = forward<0>(i);
    return i;
  }
  [[nodiscard]] constexpr std::uint64_t of_few(std::uint64_t i) const noexcept {
    if (n_ <= table_size) return table_[static_cast<std::size_t>(i)];
    do i = forward<1>(forward<0>(i));
    while (i >= n_);
    return i;
  }

  /// What a round multiplies a digit by.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t factor() const noexcept {
    return network_.keys[Pass * rounds + Round];
  }
  /// What a round adds to the product. One constant is enough to keep two digits of 0 from passing all rounds unchanged; the second
  /// pass, made where digits are so small that 0 is frequent, adds the keys of the first one.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t constant() const noexcept {
    if constexpr (Pass == 1) return network_.keys[Round];
    return Round == 1 ? network_.offset : 0;
  }
  /// What is added to the high digit. The halves of the product are folded: each alone goes up in equal steps as the digit does, and
  /// without the fold such steps can be seen in the result.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t high_step(std::uint64_t low) const noexcept {
    const std::uint64_t product = low * factor<Pass, Round>() + constant<Pass, Round>();
    return static_cast<std::uint32_t>(product ^ product >> 32) * network_.base >> 32;
  }
  /// What changes the low digit's bits. Equal steps do no harm here.
  template <std::size_t Pass, std::size_t Round>
  [[nodiscard]] constexpr std::uint64_t low_step(std::uint64_t high) const noexcept {
    return (high * factor<Pass, Round>() + constant<Pass, Round>()) >> 32 & network_.mask;
  }
  /// Keeps indices whose low digits are equal from passing the first round in step.
  [[nodiscard]] constexpr std::uint64_t slant(std::uint64_t high) const noexcept { return high * network_.slope; }

  [[nodiscard]] constexpr std::uint64_t plus(std::uint64_t high, std::uint64_t step) const noexcept {
    const std::uint64_t sum = high + step, wrapped = sum - network_.base;
    return sum < network_.base ? sum : wrapped;
  }
  [[nodiscard]] constexpr std::uint64_t minus(std::uint64_t high, std::uint64_t step) const noexcept {
    return high < step ? high + network_.base - step : high - step;
  }

  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t forward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> network_.bits;
    std::uint64_t low = (x + slant(high)) & network_.mask;
    high = plus(high, high_step<Pass, 0>(low));
    low ^= low_step<Pass, 1>(high);
    high = plus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 3>(high);
    high = plus(high, high_step<Pass, 4>(low));
    return high * (network_.mask + 1) + low;  // cheaper than a shift by a variable
  }
  template <std::size_t Pass>
  [[nodiscard]] constexpr std::uint64_t backward(std::uint64_t x) const noexcept {
    std::uint64_t high = x >> network_.bits;
    std::uint64_t low = x & network_.mask;
    high = minus(high, high_step<Pass, 4>(low));
    low ^= low_step<Pass, 3>(high);
    high = minus(high, high_step<Pass, 2>(low));
    low ^= low_step<Pass, 1>(high);
    high = minus(high, high_step<Pass, 0>(low));
    return high << network_.bits | ((low - slant(high)) & network_.mask);
  }

  std::uint64_t n_ = 0;
  union {
    std::array<std::uint8_t, table_size> table_;
    network network_;
  };
};

}  // namespace penstock::inline v0_1
