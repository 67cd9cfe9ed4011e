// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <array>
#include <utility>

namespace penstock::inline v0_1::detail {

/// The Mersenne Twister MT19937 (Matsumoto and Nishimura, ACM TOMACS 8, 1998), with its authors' seeding.
/// Implemented here because <random> would slow the compilation of every program that includes an order.
class mersenne_twister {
 public:
  explicit mersenne_twister(std::uint32_t seed) noexcept : state_{} {
    state_[0] = seed;
    for (std::size_t i = 1; i < length; ++i) {
      const std::uint32_t before = state_[i - 1];
      state_[i] = 1812433253u * (before ^ (before >> 30)) + static_cast<std::uint32_t>(i);
    }
  }

  [[nodiscard]] std::uint32_t next() noexcept {
    if (used_ == length) twist();
    std::uint32_t y = state_[used_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

 private:
  static constexpr std::size_t length = 624, middle = 397;

  void twist() noexcept {
    for (std::size_t i = 0; i < length; ++i) {
      const std::uint32_t joined =
          (state_[i] & 0x80000000u) | (state_[i + 1 == length ? 0 : i + 1] & 0x7fffffffu);
      const std::size_t other = i < length - middle ? i + middle : i + middle - length;
      state_[i] = state_[other] ^ (joined >> 1) ^ ((joined & 1u) * 0x9908b0dfu);
    }
    used_ = 0;
  }

  std::array<std::uint32_t, length> state_;
  std::size_t used_ = length;
};

/// A number in [0, maximum], drawn by masking: numpy's `random_interval`
/// (`numpy/random/src/distributions/distributions.c`). `draw` has `next32()` and `next64()`.
template <class Draw>
[[nodiscard]] std::uint64_t numpy_interval(Draw& draw, std::uint64_t maximum) noexcept {
  if (maximum == 0) return 0;
  std::uint64_t mask = maximum;
  for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  while (true) {
    const std::uint64_t drawn = (maximum > 0xffffffffu ? draw.next64() : draw.next32()) & mask;
    if (drawn <= maximum) return drawn;
  }
}

/// numpy's `shuffle` of the `count` elements that start at `first`, of an array of one dimension.
template <class Draw, class First>
void numpy_shuffle(Draw& draw, First first, std::uint64_t count) noexcept {
  using distance = decltype(first - first);
  for (std::uint64_t i = count; i-- > 1;)
    std::swap(first[static_cast<distance>(i)], first[static_cast<distance>(numpy_interval(draw, i))]);
}

/// The generator `numpy.random.RandomState(seed)`, as far as its `shuffle` goes.
/// Source: `numpy/random/mtrand.pyx` and `numpy/random/src/mt19937/mt19937.h`.
class numpy_random_state {
 public:
  explicit numpy_random_state(std::uint32_t seed) noexcept : draw_(seed) {}

  [[nodiscard]] std::uint32_t next32() noexcept { return draw_.next(); }
  [[nodiscard]] std::uint64_t next64() noexcept {
    const std::uint64_t high = draw_.next();
    return high << 32 | draw_.next();
  }
  /// `shuffle` of the `count` elements that start at `first`, of an array of one dimension.
  void shuffle(auto first, std::uint64_t count) noexcept { numpy_shuffle(*this, first, count); }

 private:
  mersenne_twister draw_;
};

}  // namespace penstock::inline v0_1::detail
