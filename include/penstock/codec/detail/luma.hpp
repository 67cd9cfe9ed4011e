// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1::detail {

/// The luma of a colour of 8 or 16 bits a channel: ITU-R BT.601's weights of 0.299, 0.587 and 0.114 in 16
/// bits, rounded. Source: Pillow 9.4, src/libImaging/Convert.c, L24.
[[nodiscard]] constexpr std::uint32_t luma(std::uint32_t red, std::uint32_t green,
                                           std::uint32_t blue) noexcept {
  return (red * 19'595u + green * 38'470u + blue * 7'471u + 0x8000u) >> 16;
}

/// The lumas of `count` pixels that are `step` values apart.
template <class T>
constexpr void luma_row(const T* pixel, std::size_t step, T* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, pixel += step)
    to[i] = static_cast<T>(luma(pixel[0], pixel[1], pixel[2]));
}

}  // namespace penstock::inline v0_1::detail
