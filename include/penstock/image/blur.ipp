// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/blur.hpp>

#include <cmath>

namespace penstock::inline v0_1 {

namespace detail {

PENSTOCK_INLINE void fill_bell(std::int16_t* weights, std::size_t kernel, double sigma) {
  const double middle = static_cast<double>(kernel - 1) / 2;
  const auto bell = [&](std::size_t i) {
    const double x = (static_cast<double>(i) - middle) / sigma;
    return std::exp(-0.5 * x * x);
  };
  double sum = 0;
  for (std::size_t i = 0; i < kernel; ++i) sum += bell(i);
  int rest = 1 << 14;
  for (std::size_t i = 0; i < kernel; ++i) {
    weights[i] = static_cast<std::int16_t>(std::lround(bell(i) / sum * (1 << 14)));
    rest -= weights[i];
  }
  // What rounding left goes to the middle ones, one by one, so that no weight is far from its own.
  const int one = rest < 0 ? -1 : 1;
  for (std::size_t i = 0; rest != 0; ++i, rest -= one) {
    const std::size_t away = (i % kernel + 1) / 2;
    const std::size_t at = i % 2 == 0 ? kernel / 2 - away : kernel / 2 + away;
    weights[at] = static_cast<std::int16_t>(weights[at] + one);
  }
}

// Blocks of a known length and sums of products of 16 bits: what GCC 12 and Clang 16 make vector code of at
// -O2.

PENSTOCK_INLINE void blur_row(const std::int16_t* __restrict from, std::int16_t* __restrict to,
                              std::size_t blocks, std::size_t step, const std::int16_t* __restrict weights,
                              std::size_t kernel) noexcept {
  for (std::size_t b = 0; b < blocks; ++b, from += blur_block, to += blur_block) {
    std::int32_t sums[blur_block];
    for (std::size_t i = 0; i < blur_block; ++i) sums[i] = 64;
    for (std::size_t k = 0; k < kernel; ++k) {
      const std::int16_t* const at = from + k * step;
      const std::int16_t weight = weights[k];
      for (std::size_t i = 0; i < blur_block; ++i) sums[i] += std::int32_t{at[i]} * weight;
    }
    for (std::size_t i = 0; i < blur_block; ++i) to[i] = static_cast<std::int16_t>(sums[i] >> 7);
  }
}

PENSTOCK_INLINE void blur_column(const std::int16_t* const* rows, std::uint8_t* __restrict to,
                                 std::size_t blocks, const std::int16_t* __restrict weights,
                                 std::size_t kernel) noexcept {
  for (std::size_t b = 0; b < blocks; ++b, to += blur_block) {
    std::int32_t sums[blur_block];
    for (std::size_t i = 0; i < blur_block; ++i) sums[i] = 1 << 20;
    for (std::size_t k = 0; k < kernel; ++k) {
      const std::int16_t* const at = rows[k] + b * blur_block;
      const std::int16_t weight = weights[k];
      for (std::size_t i = 0; i < blur_block; ++i) sums[i] += std::int32_t{at[i]} * weight;
    }
    for (std::size_t i = 0; i < blur_block; ++i) to[i] = static_cast<std::uint8_t>(sums[i] >> 21);
  }
}

}  // namespace detail

PENSTOCK_INLINE gaussian_blur_operation::gaussian_blur_operation(int kernel, double lowest, double highest)
    : kernel_(static_cast<std::uint32_t>(kernel)), lowest_(lowest), highest_(highest) {
  if (kernel < 1 || kernel > 1023 || kernel % 2 == 0)
    throw error(errc::argument,
                {"gaussian_blur: the kernel is ", kernel, " pixels wide; pass an odd number from 1 to 1023"});
  detail::check_range("gaussian_blur", "the lowest deviation", lowest, 0.01, 1e4);
  detail::check_range("gaussian_blur", "the highest deviation", highest, lowest, 1e4);
}

}  // namespace penstock::inline v0_1
