// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/detail/convert_pixels.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace convert_pixels_test {

namespace ps = penstock;

namespace {

/// Memory that begins `offset` numbers behind a multiple of 64 bytes.
struct numbers {
  numbers(std::size_t count, std::size_t offset, float value)
      : memory(count + 16 + offset, value), first(memory.data() + offset) {
    while (reinterpret_cast<std::uintptr_t>(first - offset) % 64 != 0) ++first;
  }
  std::vector<float> memory;
  float* first;
};

/// `gap` is what lies between planes.
template <std::size_t Channels, class In>
int differences(std::size_t pixels, std::size_t gap = 3, std::size_t offset = 0) {
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
  const std::size_t plane = pixels + gap;
  const std::size_t room = plane * Channels + 8;
  int wrong = 0;
  for (const bool fast : {false, true}) {
    const numbers rows(room, offset, untouched), planes(room, offset, untouched);
    const auto apart = static_cast<std::ptrdiff_t>(plane);
    if (fast) {
      ps::detail::convert_row_fast(from.data(), rows.first, pixels, map);
      ps::detail::convert_planes_fast(from.data(), planes.first, apart, pixels, map);
    } else {
      ps::detail::convert_row(from.data(), rows.first, pixels, map);
      ps::detail::convert_planes(from.data(), planes.first, apart, pixels, map);
    }
    for (std::size_t i = 0; i < room; ++i)
      wrong += rows.first[i] != (i < from.size() ? expected(i) : untouched);
    for (std::size_t i = 0; i < room; ++i) {
      const std::size_t c = i / plane, x = i % plane;
      const bool inside = c < Channels && x < pixels;
      wrong += planes.first[i] != (inside ? expected(x * Channels + c) : untouched);
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
    CHECK(differences<5, std::uint8_t>(pixels) == 0);
    CHECK(differences<1, std::uint16_t>(pixels) == 0);
    CHECK(differences<3, std::uint16_t>(pixels) == 0);
    CHECK(differences<4, float>(pixels) == 0);
  }
  // large results: planes and rows that vectors fit into, with a rest and without, and others
  CHECK(differences<3, std::uint8_t>(224 * 224, 0) == 0);
  CHECK(differences<3, std::uint8_t>(224 * 224, 8) == 0);
  CHECK(differences<4, std::uint8_t>(224 * 224, 16) == 0);
  CHECK(differences<1, std::uint8_t>(300 * 300 + 5, 3) == 0);
  CHECK(differences<3, std::uint8_t>(224 * 224 + 3, 5) == 0);
  CHECK(differences<3, std::uint8_t>(224 * 224, 3) == 0);
  CHECK(differences<3, std::uint8_t>(224 * 224, 0, 1) == 0);
  if (!ps::detail::has_avx2()) WARN("this processor has no AVX2: its kernels were not tested");
}

}  // namespace convert_pixels_test
