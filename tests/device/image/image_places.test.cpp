// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/image/image_places.hpp>

#include "support/catch.hpp"

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace device_image_image_places_test {

namespace ps = penstock;
using penstock_test::contains;
using ps::detail::image_places;

namespace {

/// An image whose pixels are their own places; -1 around it. Each operation makes a new one.
struct places_of_pixels {
  std::int64_t width, height;
  std::vector<std::pair<std::int64_t, std::int64_t>> all;

  explicit places_of_pixels(ps::image_size size) : width(size.width), height(size.height) {
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) all.emplace_back(x, y);
  }
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> at(std::int64_t x, std::int64_t y) const {
    if (x < 0 || y < 0 || x >= width || y >= height) return {-1, -1};
    return all[static_cast<std::size_t>(y * width + x)];
  }
  template <class F>
  void remake(std::int64_t w, std::int64_t h, F from) {
    std::vector<std::pair<std::int64_t, std::int64_t>> made;
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t x = 0; x < w; ++x) {
        const auto [i, j] = from(x, y);
        made.push_back(at(i, j));
      }
    all = std::move(made);
    width = w;
    height = h;
  }
};

}  // namespace

TEST_CASE("device/image/image_places: any operations in any order, pixel by pixel") {
  ps::rng random(3, 0, 0);
  std::size_t wrong = 0;
  for (int round = 0; round < 400; ++round) {
    const ps::image_size size{static_cast<std::uint32_t>(1 + random.below(12)),
                              static_cast<std::uint32_t>(1 + random.below(12))};
    image_places places(size);
    places_of_pixels expected(size);
    for (int step = 0; step < 5; ++step) {
      const std::int64_t w = expected.width, h = expected.height;
      using place = std::pair<std::int64_t, std::int64_t>;
      switch (random.below(3)) {
        case 0:
          places.mirror(ps::mirroring::horizontal);
          expected.remake(w, h, [&](auto x, auto y) { return place(w - 1 - x, y); });
          break;
        case 1:
          places.mirror(ps::mirroring::vertical);
          expected.remake(w, h, [&](auto x, auto y) { return place(x, h - 1 - y); });
          break;
        default: {
          const auto x0 = static_cast<std::int64_t>(random.below(9)) - 4;
          const auto y0 = static_cast<std::int64_t>(random.below(9)) - 4;
          const ps::image_size out{static_cast<std::uint32_t>(1 + random.below(12)),
                                   static_cast<std::uint32_t>(1 + random.below(12))};
          places.crop(x0, y0, out);
          expected.remake(out.width, out.height, [&](auto x, auto y) { return place(x + x0, y + y0); });
        }
      }
      places.mirror(ps::mirroring::none);
    }
    const ps::image_choice choice = places.choice();
    wrong += places.size() != ps::image_size{static_cast<std::uint32_t>(expected.width),
                                             static_cast<std::uint32_t>(expected.height)};
    for (std::int64_t y = 0; y < expected.height; ++y)
      for (std::int64_t x = 0; x < expected.width; ++x) {
        std::pair<std::int64_t, std::int64_t> found{-1, -1};
        if (x >= choice.left && x < choice.right && y >= choice.top && y < choice.bottom)
          found = {choice.x + ((choice.mirrored & 1u) != 0 ? -x : x),
                   choice.y + ((choice.mirrored & 2u) != 0 ? -y : y)};
        wrong += found != expected.at(x, y);
      }
  }
  CHECK(wrong == 0);
}

TEST_CASE("device/image/image_places: a rectangle outside, and columns that are no images") {
  CHECK_THROWS_WITH(image_places({4, 3}).crop(ps::image_part{1, 0, 4, 3}),
                    contains("a crop of 4 x 3 at (1, 0) from images of 4 x 3"));
  CHECK_NOTHROW(ps::detail::check_image_column(ps::extents(2, 5, 6, 3), 3));
  CHECK_NOTHROW(ps::detail::check_image_column(ps::extents(2, 5, 6, 2), 1));
  CHECK_THROWS_WITH(ps::detail::check_image_column(ps::extents(2, 5, 6), 1), contains("(2, 5, 6)"));
  CHECK_THROWS_WITH(ps::detail::check_image_column(ps::extents(2, 5, 6, 5), 1), contains("1 to 4 channels"));
  CHECK_THROWS_WITH(ps::detail::check_image_column(ps::extents(2, 5, 6, 4), 3), contains("has 3 means"));
  CHECK_THROWS_WITH(ps::detail::check_image_column(ps::extents(2, 65'536, 32'768, 1), 1),
                    contains("too large for a kernel"));
  CHECK_THROWS_WITH(ps::detail::check_kernel_size(1u << 20, 1u << 20), contains("1048576 x 1048576"));
  CHECK_NOTHROW(ps::detail::check_kernel_size(46'000, 46'000));
  CHECK_THROWS_WITH(ps::detail::check_device_padding(ps::padding_mode::reflect),
                    contains("pads with a colour"));
  CHECK_NOTHROW(ps::detail::check_device_padding(ps::padding_mode::constant));
}

}  // namespace device_image_image_places_test
