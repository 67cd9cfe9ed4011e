// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/warp.hpp>

#include <penstock/image/crop.hpp>

#include <penstock/core/half.hpp>
#include <penstock/image/erase.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace warp_test {

namespace ps = penstock;
using penstock_test::all_ways_agree;
using penstock_test::read_values;
using penstock_test::test_image;

TEST_CASE("image/warp: pixels come from where the matrix says") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  const test_image<std::uint8_t, 3> image({12, 9}, 5, 3);
  const auto shifted = ps::warp({.c = 4, .f = -2}, {.fill = {7, 8, 9}})(image, c);
  const auto values = read_values(shifted);
  for (std::size_t y = 0; y < 9; ++y)
    for (std::size_t x = 0; x < 12; ++x)
      for (std::size_t k = 0; k < 3; ++k)
        REQUIRE(values[(y * 12 + x) * 3 + k] == (x + 4 < 12 && y >= 2 ? image.at(x + 4, y - 2, k) : 7 + k));
  CHECK(all_ways_agree(shifted));
  // half a pixel: the mean of two
  const auto half = ps::warp({.c = 0.5}, {.how = ps::interpolation::bilinear})(image, c);
  const auto means = read_values(half);
  for (std::size_t y = 0; y < 9; ++y)
    for (std::size_t x = 0; x + 1 < 12; ++x)
      REQUIRE(means[(y * 12 + x) * 3] == (image.at(x, y, 0) + image.at(x + 1, y, 0) + 1) / 2);
  CHECK(all_ways_agree(half));
  CHECK(half.matrix() == ps::warp_matrix{.c = 0.5});
}

TEST_CASE("image/warp: only what is needed is read, and never more than there is") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  const test_image<std::uint8_t, 1> image({200, 100}, 5);
  const auto same = ps::warp({})(image, c);
  image.forget_reads();
  static_cast<void>(same.read({50, 40, 10, 5}));
  CHECK(image.reads() == 1);
  CHECK(image.last_part().x >= 47);
  CHECK(image.last_part().width <= 16);
  CHECK(image.last_part().y >= 37);
  CHECK(image.last_part().height <= 11);
  for (const ps::warp_matrix matrix :
       {ps::warp_matrix{.c = 1e6}, ps::warp_matrix{.f = -1e300}, ps::warp_matrix{.a = 1e200, .c = 1e300},
        ps::warp_matrix{.a = 1e308, .b = -1e308, .e = 1e308}, ps::warp_matrix{.a = 0, .e = 0},
        ps::warp_matrix{.a = 50, .e = 50}, ps::warp_matrix{.a = 1e-9, .e = 1e-9},
        ps::warp_matrix{.a = -1, .b = 0.4, .d = 2, .e = -0.3}})
    for (const auto how : {ps::interpolation::nearest, ps::interpolation::bilinear}) {
      const auto made = ps::warp(matrix, {.how = how, .fill = 5})(image, c);
      CHECK(all_ways_agree(made));
    }
  CHECK(!image.read_outside());
  image.forget_reads();
  static_cast<void>(ps::warp({.c = 1e6})(image, c).finish());
  CHECK(image.reads() == 0);
}

TEST_CASE("image/warp: images of one pixel, and of none") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  for (const ps::image_size size : {ps::image_size{1, 1}, ps::image_size{1, 9}, ps::image_size{9, 1}}) {
    const test_image<std::uint8_t, 4> image(size, 5);
    for (const auto how : {ps::interpolation::nearest, ps::interpolation::bilinear}) {
      CHECK(read_values(ps::warp({}, {.how = how})(image, c)) == image.values());
      CHECK(all_ways_agree(ps::warp({.a = 0.8, .b = 0.3, .e = 1.1}, {.how = how})(image, c)));
    }
  }
  const test_image<std::uint8_t, 3> nothing({0, 0}, 5);
  CHECK(ps::warp({})(nothing, c).finish().size() == 0);
}

TEST_CASE("image/warp: values of other types") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  const ps::warp_matrix matrix{.a = 0.9, .b = 0.2, .c = 1.25, .d = -0.1, .e = 1.1, .f = -0.5};
  const test_image<float, 3> floats({23, 18}, 5);
  const test_image<std::uint16_t, 1> deep({23, 18}, [](auto x, auto y, auto) { return x * 2000 + y * 500; });
  for (const auto how : {ps::interpolation::nearest, ps::interpolation::bilinear}) {
    CHECK(all_ways_agree(ps::warp(matrix, {.how = how, .fill = -0.5})(floats, c)));
    CHECK(all_ways_agree(ps::warp(matrix, {.how = how, .fill = 40'000})(deep, c)));
  }
  const test_image<ps::half, 3> halves(
      {23, 18}, [](auto x, auto y, auto k) { return ps::half(static_cast<float>(x * 2 + y * 3 + k)); });
  const auto moved = ps::warp({.c = 0.5}, {.how = ps::interpolation::bilinear, .fill = 0.5})(halves, c);
  CHECK(static_cast<float>(moved.read({4, 5, 1, 1}).data()[0]) == 24.0f);
  const auto erased = ps::erase({4, 5, 1, 1}, -0.25)(halves, c);
  CHECK(static_cast<float>(erased.read({4, 5, 1, 1}).data()[2]) == -0.25f);
  // a plane stays one, within
  const auto made = ps::warp(matrix, {.how = ps::interpolation::bilinear})(deep, c);
  const auto at = read_values(made, {10, 9, 3, 1});
  CHECK(std::abs((at[1] - at[0]) - (0.9 * 2000 - 0.1 * 500)) <= 1);
}

TEST_CASE("image/warp: what is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(ps::warp({.a = nan}), ps::error);
  CHECK_THROWS_AS(ps::warp({.f = inf}), ps::error);
  CHECK_THROWS_AS(ps::warp({}, {.how = ps::interpolation::bicubic}), ps::error);
  CHECK_THROWS_AS(ps::warp({}, {.how = ps::interpolation::area}), ps::error);
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 3> image({3, 3}, 5);
  CHECK_THROWS_AS(ps::warp({}, {.fill = {1, 2}})(image, {{0, 1}, 0, 1, 0, scratch}), ps::error);
}

TEST_CASE("image/warp: entries that cancel each other read nothing outside") {
  ps::image_scratch scratch, below;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch}, inner{{0, 1}, 0, 1, 0, below};
  const test_image<std::uint8_t, 1> image({60, 50}, 5);
  for (double big = 1e8; big < 1e17; big *= 10)
    for (const auto how : {ps::interpolation::nearest, ps::interpolation::bilinear}) {
      const ps::warp_matrix matrix{.a = big, .b = -big, .c = 3, .d = -big, .e = big, .f = -2};
      const auto moved = ps::warp(matrix, {.how = how, .fill = 7})(ps::crop(20, 10, 9, 8)(image, inner), c);
      for (std::uint32_t y = 0; y < 8; ++y)
        for (std::uint32_t x = 0; x < 9; ++x) static_cast<void>(moved.read({x, y, 1, 1}));
      CHECK_FALSE(image.read_outside());
    }
}

}  // namespace warp_test
