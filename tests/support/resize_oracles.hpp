// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <penstock/core/call.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace penstock_test {

/// What Pillow or torchvision makes of an image. Written by tools/image_oracles_resize.py.
struct resize_oracle {
  const char* operation;
  const char* arguments;
  const char* kind;
  std::uint32_t width, height;
  std::size_t channels;
  std::uint32_t seed;
  int levels;
  std::uint32_t new_width, new_height;
  std::string_view hex;

  [[nodiscard]] std::vector<std::uint8_t> values() const {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::vector<std::uint8_t> all;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      all.push_back(static_cast<std::uint8_t>(digit(hex[i]) * 16 + digit(hex[i + 1])));
    return all;
  }
  /// The image that the script made, with rows that are not dense.
  template <std::size_t Channels>
  [[nodiscard]] test_image<std::uint8_t, Channels> image() const {
    std::uint32_t state = seed;
    const std::string_view what = kind;
    return {{width, height},
            [&](std::size_t x, std::size_t y, std::size_t c) {
              state = state * 1664525u + 1013904223u;
              if (what == "noise") return state >> 24;
              if (what == "soft") return 96 + (state >> 26);
              return static_cast<std::uint32_t>(5 * x + 3 * y + 60 * c + seed) % 256;
            },
            7};
  }
};

inline const resize_oracle resize_oracles[] = {
#include "image/oracles/resize.inc"
};

/// `make(image, arguments)` is the lazy image that the operation makes, for each of its cases.
template <class Make>
void check_resize_oracles(std::string_view operation, const Make& make) {
  std::size_t cases = 0;
  const auto check = [&](const resize_oracle& oracle, const auto& source) {
    std::istringstream text(oracle.arguments);
    std::vector<std::string> arguments;
    for (std::string word; text >> word;) arguments.push_back(word);
    INFO(operation << ' ' << oracle.arguments << " of " << oracle.kind << ' ' << oracle.width << " x "
                   << oracle.height << " x " << oracle.channels);
    const auto result = make(source, arguments);
    REQUIRE(result.size() == ps::image_size{oracle.new_width, oracle.new_height});
    const auto expected = oracle.values(), found = read_values(result);
    REQUIRE(found.size() == expected.size());
    int maximum = 0;
    std::size_t above_one = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const int levels = std::abs(int{found[i]} - int{expected[i]});
      maximum = std::max(maximum, levels);
      above_one += levels > 1 ? 1 : 0;
    }
    CHECK(maximum <= oracle.levels);
    CHECK(above_one * 100 <= found.size());
    CHECK(all_ways_agree(result));
    CHECK_FALSE(source.read_outside());
    ++cases;
  };
  for (const resize_oracle& oracle : resize_oracles) {
    if (operation != oracle.operation) continue;
    if (oracle.channels == 1) check(oracle, oracle.image<1>());
    if (oracle.channels == 3) check(oracle, oracle.image<3>());
    if (oracle.channels == 4) check(oracle, oracle.image<4>());
  }
  CHECK(cases != 0);
}

/// A call of an operation, with a scratch of its own.
template <class Scratch>
struct operation_call {
  Scratch scratch;

  [[nodiscard]] ps::call<Scratch> at(std::uint64_t index, std::uint64_t seed = 1, std::uint64_t stream = 1) {
    return {ps::position{.epoch = 0, .index = index}, 0, seed, stream, scratch};
  }
};
using image_call = operation_call<ps::image_scratch>;

}  // namespace penstock_test
