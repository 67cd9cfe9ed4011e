// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>
#include <penstock/core/to_size.hpp>

#include <array>
#include <utility>
#include <vector>

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

/// From this size, PyTorch draws 64 bits per element and fills the table inside out.
inline constexpr std::uint64_t torch_wide_draws = 0xffffffffu / 20;

/// The result of PyTorch's `torch.randperm(n)` on the CPU with a generator of this seed
/// (`aten/src/ATen/native/TensorFactories.cpp`): only the seed's low 32 bits count, and draws are reduced
/// by remainder, with its slight bias. `Word` holds the numbers below n.
template <class Word>
[[nodiscard]] std::vector<Word> torch_randperm(std::uint64_t n, std::uint64_t seed,
                                               std::uint64_t wide_draws_from = torch_wide_draws) {
  std::vector<Word> order(detail::to_size(n));
  mersenne_twister draw(static_cast<std::uint32_t>(seed));
  if (n < wide_draws_from) {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Word>(i);
    // n is small enough for 32-bit remainders, which are several times as fast.
    for (std::uint32_t left = static_cast<std::uint32_t>(n), i = 0; left > 1; --left, ++i)
      std::swap(order[i], order[i + draw.next() % left]);
  } else {
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint64_t high = draw.next();
      const auto other = detail::to_size((high << 32 | draw.next()) % (i + 1));
      order[i] = order[other];
      order[other] = static_cast<Word>(i);
    }
  }
  return order;
}

}  // namespace penstock::inline v0_1::detail
