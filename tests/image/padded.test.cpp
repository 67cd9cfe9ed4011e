// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/padded.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <limits>
#include <string>
#include <vector>

namespace padded_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

std::string indexes(ps::padding_mode mode, std::int64_t n) {
  std::string text;
  for (std::int64_t i = -2 * n - 1; i < 3 * n + 1; ++i)
    text += static_cast<char>('a' + ps::detail::padded_index(i, n, mode));
  return text;
}

template <class T, std::size_t Channels>
void check_windows() {
  ps::image_scratch scratch;
  const test_image<T, Channels> image({6, 5}, 3, 2);
  for (const auto mode : {ps::padding_mode::constant, ps::padding_mode::edge, ps::padding_mode::reflect,
                          ps::padding_mode::symmetric})
    for (const std::int64_t x : {-9, -2, 0, 3, 8})
      for (const std::int64_t y : {-7, -1, 0, 2, 6})
        for (const ps::image_size size :
             {ps::image_size{1, 1}, ps::image_size{3, 4}, ps::image_size{14, 13}}) {
          const ps::padded<test_image<T, Channels>> window(image, x, y, size, 5, mode, scratch);
          INFO(x << ' ' << y << ' ' << size.width << ' ' << static_cast<int>(mode));
          std::vector<T> expected;
          for (std::int64_t j = y; j < y + size.height; ++j)
            for (std::int64_t i = x; i < x + size.width; ++i)
              for (std::size_t c = 0; c < Channels; ++c) {
                const bool inside = i >= 0 && i < 6 && j >= 0 && j < 5;
                expected.push_back(
                    !inside && mode == ps::padding_mode::constant
                        ? T(5)
                        : image.at(static_cast<std::size_t>(ps::detail::padded_index(i, 6, mode)),
                                   static_cast<std::size_t>(ps::detail::padded_index(j, 5, mode)), c));
              }
          REQUIRE(read_values(window) == expected);
          REQUIRE(all_ways_agree(window));
          REQUIRE_FALSE(image.read_outside());
        }
}

}  // namespace

TEST_CASE("image/padded: what stands beyond the edges") {
  CHECK(indexes(ps::padding_mode::edge, 3) ==
        "aaaaaaa"
        "abc"
        "ccccccc");
  CHECK(indexes(ps::padding_mode::reflect, 3) ==
        "bcbabcb"
        "abc"
        "babcbab");
  CHECK(indexes(ps::padding_mode::symmetric, 3) ==
        "aabccba"
        "abc"
        "cbaabcc");
  CHECK(indexes(ps::padding_mode::reflect, 1) ==
        "aaa"
        "a"
        "aaa");
  CHECK(indexes(ps::padding_mode::symmetric, 1) ==
        "aaa"
        "a"
        "aaa");
}

TEST_CASE("image/padded: any window of an image, in all modes") {
  check_windows<std::uint8_t, 1>();
  check_windows<std::uint8_t, 3>();
  check_windows<std::uint16_t, 4>();
  check_windows<float, 3>();
}

TEST_CASE("image/padded: only what is needed of the image is read") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 3> image({20, 10}, 3);
  const ps::padded<test_image<std::uint8_t, 3>> window(image, -5, -5, {30, 20}, 0, ps::padding_mode::constant,
                                                       scratch);
  (void)drawn_values(window, {0, 0, 30, 5});
  (void)drawn_values(window, {0, 0, 5, 20});
  (void)drawn_values(window, {25, 3, 5, 9});
  CHECK(image.reads() == 0);
  (void)drawn_values(window, {3, 4, 6, 7});
  CHECK(image.last_part() == ps::image_part{0, 0, 4, 6});
  CHECK(window.read({5, 5, 20, 10}).data() == image.read({0, 0, 20, 10}).data());
  CHECK(drawn_values(window, {0, 0, 0, 0}).empty());
  const ps::padded<test_image<std::uint8_t, 3>> mirror(image, -5, -5, {30, 20}, 0, ps::padding_mode::reflect,
                                                       scratch);
  (void)mirror.read({3, 12, 4, 5});
  CHECK(image.last_part() == ps::image_part{0, 7, 3, 3});
}

TEST_CASE("image/padded: an image without pixels has a fill, or nothing to repeat") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 1> empty({0, 0}, 3);
  using window = ps::padded<test_image<std::uint8_t, 1>>;
  CHECK(read_values(window(empty, -1, -1, {2, 2}, 7, ps::padding_mode::constant, scratch)) ==
        std::vector<std::uint8_t>(4, 7));
  CHECK_THROWS_AS(window(empty, -1, -1, {2, 2}, 7, ps::padding_mode::edge, scratch), ps::error);
  CHECK(window(empty, 0, 0, {0, 0}, 7, ps::padding_mode::edge, scratch).size() == ps::image_size{});
}

TEST_CASE("image/padded: a fill is a value for all channels, or one for each") {
  CHECK(ps::pixel_fill(7).as<std::uint8_t, 3>() == std::array<std::uint8_t, 3>{7, 7, 7});
  CHECK(ps::pixel_fill({1, 2, 3}).as<std::uint8_t, 3>() == std::array<std::uint8_t, 3>{1, 2, 3});
  CHECK(ps::pixel_fill(0.5).as<float, 1>() == std::array<float, 1>{0.5});
  CHECK(ps::pixel_fill(65535).as<std::uint16_t, 1>()[0] == 65535);
  CHECK_THROWS_AS((ps::pixel_fill({1, 2, 3}).as<std::uint8_t, 4>()), ps::error);
  CHECK_THROWS_AS((ps::pixel_fill(256).as<std::uint8_t, 3>()), ps::error);
  CHECK_THROWS_AS((ps::pixel_fill(-1).as<std::uint8_t, 3>()), ps::error);
  CHECK_THROWS_AS((ps::pixel_fill(0.5).as<std::uint8_t, 3>()), ps::error);
  CHECK_THROWS_AS(ps::pixel_fill(std::numeric_limits<double>::quiet_NaN()), ps::error);
  CHECK_THROWS_AS(ps::pixel_fill(std::numeric_limits<double>::infinity()), ps::error);
  CHECK_THROWS_AS(ps::pixel_fill(std::initializer_list<double>{}), ps::error);
  CHECK_THROWS_AS(ps::pixel_fill({1, 2, 3, 4, 5}), ps::error);
}

TEST_CASE("image/padded: sides longer than 2^31 - 1 are refused") {
  CHECK(ps::detail::padded_size(5, 2'147'483'647) == ps::image_size{5, 2'147'483'647});
  CHECK_THROWS_AS(ps::detail::padded_size(2'147'483'648, 5), ps::error);
  CHECK_THROWS_AS(ps::detail::padded_size(5, 2'147'483'648), ps::error);
}

}  // namespace padded_test
