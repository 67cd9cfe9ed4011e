// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/detail/convert_pixels.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ps = penstock;

namespace {

template <std::size_t Channels, class In>
int differences(std::size_t pixels) {
  ps::rng random(pixels, Channels, sizeof(In));
  std::vector<In> from(pixels * Channels);
  for (In& value : from) value = static_cast<In>(random());
  ps::detail::channel_map<Channels> map;
  for (std::size_t c = 0; c < Channels; ++c) {
    map.shift[c] = static_cast<float>(random.uniform(-100, 300));
    map.scale[c] = static_cast<float>(random.uniform(0.001, 3));
  }
  const auto expected = [&](std::size_t i) {
    return (static_cast<float>(from[i]) - map.shift[i % Channels]) * map.scale[i % Channels];
  };
  constexpr float untouched = -12345.0f;
  const std::size_t plane = pixels + 3;
  const std::size_t room = plane * Channels + 8;
  int wrong = 0;
  for (const bool fast : {false, true}) {
    std::vector<float> rows(room, untouched), planes(room, untouched);
    if (fast) {
      ps::detail::convert_row_fast(from.data(), rows.data(), pixels, map);
      ps::detail::convert_planes_fast(from.data(), planes.data(), static_cast<std::ptrdiff_t>(plane), pixels,
                                      map);
    } else {
      ps::detail::convert_row(from.data(), rows.data(), pixels, map);
      ps::detail::convert_planes(from.data(), planes.data(), static_cast<std::ptrdiff_t>(plane), pixels, map);
    }
    for (std::size_t i = 0; i < room; ++i) wrong += rows[i] != (i < from.size() ? expected(i) : untouched);
    for (std::size_t i = 0; i < room; ++i) {
      const std::size_t c = i / plane, x = i % plane;
      const bool inside = c < Channels && x < pixels;
      wrong += planes[i] != (inside ? expected(x * Channels + c) : untouched);
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("image/detail/convert_pixels: all ways give the same bits, for all lengths") {
  for (std::size_t pixels = 0; pixels < 70; ++pixels) {
    INFO(pixels << " pixels");
    CHECK(differences<1, std::uint8_t>(pixels) == 0);
    CHECK(differences<2, std::uint8_t>(pixels) == 0);
    CHECK(differences<3, std::uint8_t>(pixels) == 0);
    CHECK(differences<4, std::uint8_t>(pixels) == 0);
    CHECK(differences<1, std::uint16_t>(pixels) == 0);
    CHECK(differences<3, std::uint16_t>(pixels) == 0);
    CHECK(differences<4, float>(pixels) == 0);
  }
  CHECK(differences<3, std::uint8_t>(224 * 224) == 0);
  if (!ps::detail::has_avx2()) WARN("this processor has no AVX2: its kernels were not tested");
}
