// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/image/interpolation.hpp>
#include <penstock/image/padded.hpp>

#include "support/test_image.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

/// What torchvision makes of images: the cases of tools/image_oracles_warp.py.
namespace penstock_test {

struct warp_case {
  std::string_view kind;
  ps::interpolation how;
  std::uint32_t width, height;
  std::size_t channels;
  std::array<double, 6> numbers;
  bool expand;
  ps::pixel_fill fill;
  std::uint32_t made_width, made_height;
  std::string_view pixels;

  [[nodiscard]] std::vector<std::uint8_t> expected() const {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::vector<std::uint8_t> all;
    for (std::size_t i = 0; i + 1 < pixels.size(); i += 2)
      all.push_back(static_cast<std::uint8_t>(digit(pixels[i]) * 16 + digit(pixels[i + 1])));
    return all;
  }
  template <std::size_t Channels>
  [[nodiscard]] test_image<std::uint8_t, Channels> image() const {
    std::vector<std::uint8_t> values;
    std::uint32_t state = width;
    for (std::size_t i = 0; i < std::size_t{width} * height * Channels; ++i) {
      state = state * 1664525u + 1013904223u;
      values.push_back(static_cast<std::uint8_t>(state >> 24));
    }
    return {{width, height}, values};
  }
};

[[nodiscard]] inline const std::vector<warp_case>& warp_cases() {
  using ps::interpolation;
  static const std::vector<warp_case> all = {
#include "../image/oracles/warp.inc"
  };
  return all;
}

/// How many values differ by more than so much.
[[nodiscard]] inline std::size_t differing(const std::vector<std::uint8_t>& a,
                                           const std::vector<std::uint8_t>& b, int more_than) {
  if (a.size() != b.size()) return a.size() + b.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += std::abs(a[i] - b[i]) > more_than ? 1 : 0;
  return count;
}

}  // namespace penstock_test
