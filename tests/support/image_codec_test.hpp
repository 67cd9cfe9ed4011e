// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/orientation.hpp>

#include "support/catch.hpp"
#include "support/test_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Shared by the tests of codecs of images.
namespace image_codec_test {

namespace ps = penstock;

/// Whether many parts of large files are compared: not under the address sanitizer, where that takes minutes.
[[nodiscard]] inline bool thorough() {
#ifdef __SANITIZE_ADDRESS__
  return penstock_test::long_tests();
#else
  return true;
#endif
}

/// Pixels that are copied, to be compared.
template <class T>
struct picture {
  ps::image_size size;
  std::size_t channels = 0;
  std::vector<T> values;
  friend bool operator==(const picture&, const picture&) = default;

  [[nodiscard]] picture part(const ps::image_part& p) const {
    picture out{p.size(), channels, {}};
    for (std::size_t y = 0; y < p.height; ++y) {
      const auto row =
          values.begin() + static_cast<std::ptrdiff_t>(((p.y + y) * size.width + p.x) * channels);
      out.values.insert(out.values.end(), row, row + static_cast<std::ptrdiff_t>(p.width * channels));
    }
    return out;
  }
  template <std::size_t Channels>
  [[nodiscard]] ps::pixel_view<T, Channels> view() const {
    return {values.data(), size};
  }
};

template <class T, std::size_t Channels>
picture<T> copied(const ps::pixel_view<T, Channels>& view) {
  picture<T> out{view.size(), Channels, {}};
  for (std::size_t y = 0; y < view.height(); ++y)
    out.values.insert(out.values.end(), view.row(y), view.row(y) + view.row_values());
  return out;
}

/// The stored pixels as they are shown; written down from EXIF's table, apart from the library's own.
template <class T>
picture<T> shown(const picture<T>& stored, ps::orientation o) {
  const auto n = static_cast<int>(o);
  const std::uint32_t w = stored.size.width, h = stored.size.height;
  picture<T> out{n >= 5 ? ps::image_size{h, w} : stored.size, stored.channels, {}};
  for (std::uint32_t y = 0; y < out.size.height; ++y)
    for (std::uint32_t x = 0; x < out.size.width; ++x) {
      std::uint32_t row = y, column = x;
      switch (n) {
        case 2:
          column = w - 1 - x;
          break;
        case 3:
          column = w - 1 - x, row = h - 1 - y;
          break;
        case 4:
          row = h - 1 - y;
          break;
        case 5:
          column = y, row = x;
          break;
        case 6:
          column = y, row = h - 1 - x;
          break;
        case 7:
          column = w - 1 - y, row = h - 1 - x;
          break;
        case 8:
          column = w - 1 - y, row = x;
          break;
        default:
          break;
      }
      const auto from = stored.values.begin() +
                        static_cast<std::ptrdiff_t>((std::size_t{row} * w + column) * stored.channels);
      out.values.insert(out.values.end(), from, from + static_cast<std::ptrdiff_t>(stored.channels));
    }
  return out;
}

/// A picture with edges, gradients and noise.
template <class T>
picture<T> some_picture(ps::image_size size, std::size_t channels, std::uint64_t seed) {
  ps::rng random(seed, 0, 0);
  picture<T> out{size, channels, {}};
  constexpr unsigned scale = sizeof(T) == 1 ? 1 : 257;
  for (std::uint32_t y = 0; y < size.height; ++y)
    for (std::uint32_t x = 0; x < size.width; ++x)
      for (std::size_t c = 0; c < channels; ++c) {
        const unsigned value = x % 16 < 8 ? (x * 3 + y * (static_cast<unsigned>(c) + 1) * 2) % 256
                                          : static_cast<unsigned>(random.below(256));
        out.values.push_back(static_cast<T>(value * scale + (scale > 1 ? random.below(200) : 0) % 65'536));
      }
  return out;
}

inline ps::image_part some_part(const ps::image_size& size, ps::rng& random) {
  ps::image_part part;
  part.x = static_cast<std::uint32_t>(random.below(size.width));
  part.y = static_cast<std::uint32_t>(random.below(size.height));
  part.width = 1 + static_cast<std::uint32_t>(random.below(size.width - part.x));
  part.height = 1 + static_cast<std::uint32_t>(random.below(size.height - part.y));
  return part;
}

/// Draws a part to memory in each layout; all must give the pixels of `expected`.
template <class Image>
void check_draws(const Image& image, const ps::image_part& part,
                 const picture<typename Image::value_type>& expected) {
  using value = typename Image::value_type;
  constexpr std::size_t channels = Image::channels;
  const std::size_t w = part.width, h = part.height;
  const ps::extents shape(h, w, channels);
  const auto at = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  struct layout {
    std::int64_t row, column, channel;
  };
  const std::size_t pitch = w * channels + 5;
  for (const layout& l : {layout{at(w * channels), channels, 1}, layout{at(w), 1, at(w * h)},
                          layout{at(pitch), channels, 1}, layout{at(2 * w * channels), 2 * channels, 2}}) {
    const std::vector<value> untouched(h * (pitch + 2 * w * channels) + 1, value{77});
    std::vector<value> memory = untouched;
    ps::element_strides strides{};
    strides[0] = l.row;
    strides[1] = l.column;
    strides[2] = l.channel;
    image.draw(part, ps::destination<value>(memory.data(), shape, strides));
    picture<value> got{part.size(), channels, std::vector<value>(w * h * channels)};
    value* into = got.values.data();  // pointers: most of the time of some tests, not optimised, goes here
    for (std::size_t y = 0; y < h; ++y)
      for (std::size_t x = 0; x < w; ++x) {
        value* from = memory.data() + at(y) * l.row + at(x) * l.column;
        for (std::size_t c = 0; c < channels; ++c, from += l.channel) {
          *into++ = *from;
          *from = value{77};
        }
      }
    REQUIRE(got == expected);
    if (memory != untouched)
      FAIL("a gap was written at " << std::mismatch(memory.begin(), memory.end(), untouched.begin()).first -
                                          memory.begin());
  }
}

/// All pixels and random parts of them, read and drawn, are those of `expected`.
template <class Image>
void check_parts(const Image& image, const picture<typename Image::value_type>& expected, std::uint64_t seed,
                 int rounds = 8) {
  REQUIRE(image.size() == expected.size);
  REQUIRE(copied(image.read(ps::whole_of(image.size()))) == expected);
  check_draws(image, ps::whole_of(image.size()), expected);
  ps::rng random(seed, 1, 2);
  for (int i = 0; i < rounds; ++i) {
    const ps::image_part part = some_part(image.size(), random);
    CAPTURE(part.x, part.y, part.width, part.height);
    const auto wanted = expected.part(part);
    REQUIRE(copied(image.read(part)) == wanted);
    check_draws(image, part, wanted);
  }
  const auto finished = image.finish();
  REQUIRE(finished.shape() == image.shape());
  REQUIRE(std::equal(expected.values.begin(), expected.values.end(), finished.data()));
  REQUIRE(image.read({}).width() == 0);
}

}  // namespace image_codec_test
