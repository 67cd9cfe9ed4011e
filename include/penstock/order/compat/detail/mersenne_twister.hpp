// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <array>

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

}  // namespace penstock::inline v0_1::detail
