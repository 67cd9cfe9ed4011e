// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <array>
#include <limits>

namespace penstock::inline v0_1 {

namespace detail {

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

}  // namespace detail

/// A cheap 64-bit mixer: a bijection in which every input bit affects every output bit.
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood 2014, constants by David Stafford, variant 13).
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Philox 4x32 with ten rounds: four random words from a counter of four words and a key of two.
/// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox4x32_10(
    std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xd2511f53u} * counter[0];
    const std::uint64_t right = std::uint64_t{0xcd9e8d57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
        static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

/// Addressed random numbers: a draw depends on the address (seed, epoch, index, stream) and on how many were
/// drawn at that address before, never on threads, ranks or what other samples drew.
///
/// A `std::uniform_random_bit_generator` of 64-bit words. Copyable, 44 bytes, no allocation; constructing one
/// costs nothing, and four 32-bit words cost one Philox block (about 15 ns). The standard's distributions
/// differ between standard libraries; `uniform` and `below` do not.
class rng {
 public:
  using result_type = std::uint64_t;

  constexpr rng(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index,
                std::uint64_t stream = 0) noexcept {
    const std::uint64_t key = mix64(mix64(seed) ^ mix64(epoch + 0x632be59bd9b4e019u) ^ (mix64(stream) << 1));
    key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
    counter_ = {0, static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(index),
                static_cast<std::uint32_t>(index >> 32)};
  }

  [[nodiscard]] static constexpr result_type min() noexcept { return 0; }
  [[nodiscard]] static constexpr result_type max() noexcept {
    return std::numeric_limits<result_type>::max();
  }

  constexpr result_type operator()() noexcept {
    if (used_ == 4) {
      words_ = philox4x32_10(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    const std::uint64_t low = words_[used_];
    const std::uint64_t high = words_[used_ + 1];
    used_ += 2;
    return high << 32 | low;
  }

  /// A uniform integer in [0, n), without bias; 0 if n == 0. Source: Lemire, "Fast random integer generation
  /// in an interval", 2019.
  constexpr std::uint64_t below(std::uint64_t n) noexcept {
    if (n == 0) return 0;
    std::uint64_t drawn = (*this)();
    if (drawn * n < n) {
      const std::uint64_t threshold = (0 - n) % n;
      while (drawn * n < threshold) drawn = (*this)();
    }
    return detail::multiply_high(drawn, n);
  }

  /// A real number in [0, 1) with 53 random bits.
  constexpr double uniform() noexcept { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  /// A real number in [low, high).
  constexpr double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  /// True with probability p.
  constexpr bool chance(double p) noexcept { return uniform() < p; }

 private:
  std::array<std::uint32_t, 4> counter_{};
  std::array<std::uint32_t, 4> words_{};
  std::array<std::uint32_t, 2> key_{};
  std::uint32_t used_ = 4;
};

}  // namespace penstock::inline v0_1
