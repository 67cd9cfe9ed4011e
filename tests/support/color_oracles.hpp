// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/test_image.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// What torchvision makes of an image: a line of tests/image/oracles/color.inc.
struct color_oracle {
  std::string_view operation;
  double a, b;
  std::string_view kind;
  std::uint32_t width, height;
  std::size_t channels;
  std::uint32_t seed;
  std::size_t result_channels;
  std::string_view hex;

  [[nodiscard]] std::vector<std::uint8_t> bytes() const {
    const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
    std::vector<std::uint8_t> all;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      all.push_back(static_cast<std::uint8_t>(digit(hex[i]) * 16 + digit(hex[i + 1])));
    return all;
  }
  /// The image, with `Channels` of them; further ones than the oracle's are made up.
  template <std::size_t Channels>
  [[nodiscard]] test_image<std::uint8_t, Channels> image() const {
    std::uint32_t state = seed;
    return {{width, height},
            [&](std::size_t x, std::size_t y, std::size_t c) -> std::uint32_t {
              if (c >= channels) return static_cast<std::uint32_t>(x * 31 + y * 7) % 256;
              state = state * 1664525u + 1013904223u;
              if (kind == "noise") return state >> 24;
              if (kind == "soft") return 96 + (state >> 26);
              if (kind == "ramp")
                return (5 * static_cast<std::uint32_t>(x) + 3 * static_cast<std::uint32_t>(y) +
                        60 * static_cast<std::uint32_t>(c) + seed) %
                       256;
              return 77;
            },
            3};
  }
};

inline const std::vector<color_oracle>& color_oracles() {
  static const std::vector<color_oracle> all = {
#include "image/oracles/color.inc"
  };
  return all;
}

/// The values that differ by more than `levels` from an oracle's result, over all cases of an operation,
/// drawn in all ways; images of three channels are tried with an alpha channel too. `make(a, b)` makes the
/// operation.
struct oracle_result {
  int cases = 0, wrong = 0;
  std::string first = {};
};
template <class Make>
oracle_result against_torchvision(std::string_view operation, int levels, Make&& make) {
  oracle_result result;
  const auto check = [&](const color_oracle& one, auto image) {
    ps::image_scratch scratch;
    const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
    const auto expected = one.bytes();
    const auto changed = make(one.a, one.b)(image, c);
    constexpr std::size_t out = decltype(changed)::channels, in = decltype(image)::channels;
    const auto values = read_values(changed);
    bool right = changed.size() == image.size() && values.size() == std::size_t{one.width} * one.height * out;
    for (std::size_t i = 0; right && i < values.size(); ++i) {
      const std::size_t pixel = i / out, channel = i % out;
      if (channel == 3 && in == 4) {
        right = values[i] == image.at(pixel % one.width, pixel / one.width, 3);
      } else {
        const int apart = int{values[i]} - int{expected[pixel * one.result_channels + channel]};
        right = apart <= levels && -apart <= levels;
      }
    }
    right = right && all_ways_agree(changed) && !image.read_outside();
    ++result.cases;
    if (right) return;
    ++result.wrong;
    if (result.first.empty()) {
      std::ostringstream text;
      text << one.operation << " " << one.a << " " << one.b << " of " << one.kind << " " << one.width << "x"
           << one.height << "x" << in;
      result.first = text.str();
    }
  };
  for (const color_oracle& one : color_oracles()) {
    if (one.operation != operation) continue;
    if (one.channels == 1) {
      check(one, one.image<1>());
    } else {
      check(one, one.image<3>());
      check(one, one.image<4>());
    }
  }
  return result;
}

}  // namespace penstock_test
