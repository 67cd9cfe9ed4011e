// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/numpy_random_state.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/detail/wide.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The generator `numpy.random.default_rng(seed)`: PCG64 (XSL-RR 128/64; O'Neill, HMC-CS-2014-0905), seeded
/// by numpy's SeedSequence (`numpy/random/bit_generator.pyx`).
class numpy_generator {
 public:
  explicit numpy_generator(std::uint64_t seed) noexcept {
    const std::array<std::uint64_t, 4> words = seed_words(seed);
    const wide start{words[0], words[1]};
    increment_ = {words[2] << 1 | words[3] >> 63, words[3] << 1 | 1};
    step();
    state_ = state_ + start;
    step();
  }

  /// `SeedSequence(seed).generate_state(4, numpy.uint64)`.
  [[nodiscard]] static std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) noexcept {
    std::uint32_t constant = 0x43b0d7e5u;
    const auto hash = [&constant](std::uint32_t v) {
      v ^= constant;
      constant *= 0x931e8875u;
      v *= constant;
      return v ^ v >> 16;
    };
    std::array<std::uint32_t, 4> pool{static_cast<std::uint32_t>(seed),
                                      static_cast<std::uint32_t>(seed >> 32), 0, 0};
    for (std::uint32_t& word : pool) word = hash(word);
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t d = 0; d < 4; ++d) {
        if (s == d) continue;
        const std::uint32_t mixed = 0xca01f9ddu * pool[d] - 0x4973f715u * hash(pool[s]);
        pool[d] = mixed ^ mixed >> 16;
      }
    }
    std::array<std::uint64_t, 4> words{};
    std::uint32_t key = 0x8b51f9ddu;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t v = pool[i % 4] ^ key;
      key *= 0x58f38dedu;
      v *= key;
      v ^= v >> 16;
      words[i / 2] |= static_cast<std::uint64_t>(v) << (i % 2 * 32);
    }
    return words;
  }

  [[nodiscard]] std::uint64_t next64() noexcept {
    step();
    const std::uint64_t joined = state_.high ^ state_.low;
    const unsigned turn = static_cast<unsigned>(state_.high >> 58);
    return joined >> turn | joined << ((64 - turn) & 63u);
  }

  /// Half of a 64-bit draw; the other half is kept for the next call, whatever is drawn in between.
  [[nodiscard]] std::uint32_t next32() noexcept {
    if (std::exchange(has_half_, !has_half_)) return half_;
    const std::uint64_t both = next64();
    half_ = static_cast<std::uint32_t>(both >> 32);
    return static_cast<std::uint32_t>(both);
  }

  /// A number in [0, 1).
  [[nodiscard]] double next_double() noexcept { return static_cast<double>(next64() >> 11) * 0x1p-53; }

  /// `integers(low, high)`: a number in [low, high), by Lemire's multiplication; high - low must be below
  /// 2^32.
  [[nodiscard]] std::uint64_t integer(std::uint64_t low, std::uint64_t high) noexcept {
    const std::uint64_t count = high - low;
    if (count <= 1) return low;
    std::uint64_t product = next32() * count;
    if ((product & 0xffffffffu) < count) {
      const std::uint64_t uneven = (0x100000000u - count) % count;
      while ((product & 0xffffffffu) < uneven) product = next32() * count;
    }
    return low + (product >> 32);
  }

  /// `shuffle` of the `count` elements that start at `first`.
  void shuffle(auto first, std::uint64_t count) noexcept { numpy_shuffle(*this, first, count); }

  /// `choice(from, count, replace=False)`: `count` different numbers below `from`, count <= from < 2^32.
  [[nodiscard]] std::vector<std::uint64_t> choice(std::uint64_t from, std::uint64_t count) {
    std::vector<std::uint64_t> chosen;
    if (from > 10'000 && count > from / 50) {  // shuffles, and takes the end
      chosen.resize(detail::to_size(from));
      for (std::uint64_t i = 0; i < from; ++i) chosen[detail::to_size(i)] = i;
      swap_down(chosen, from - 1, std::max<std::uint64_t>(from - count, 1));
      chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(count));
      return chosen;
    }
    std::vector<bool> taken(detail::to_size(from));  // Floyd's method
    for (std::uint64_t i = from - count; i < from; ++i) {
      std::uint64_t drawn = integer(0, i + 1);
      if (taken[detail::to_size(drawn)]) drawn = i;
      taken[detail::to_size(drawn)] = true;
      chosen.push_back(drawn);
    }
    if (count > 1) swap_down(chosen, count - 1, 1);
    return chosen;
  }

 private:
  /// Swaps each element from `last` down to `first` with a random one at or before it.
  void swap_down(std::vector<std::uint64_t>& all, std::uint64_t last, std::uint64_t first) noexcept {
    for (std::uint64_t i = last; i >= first; --i)
      std::swap(all[detail::to_size(i)], all[detail::to_size(integer(0, i + 1))]);
  }

  void step() noexcept {
    constexpr std::uint64_t high = 2549297995355413924u, low = 4865540595714422341u;
    state_ = product(state_.low, low) + wide{state_.high * low + state_.low * high, 0} + increment_;
  }

  wide state_, increment_;
  std::uint32_t half_ = 0;
  bool has_half_ = false;
};

}  // namespace penstock::inline v0_1::detail
