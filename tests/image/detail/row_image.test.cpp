// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/detail/row_image.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace row_image_test {

namespace ps = penstock;

namespace {

/// Each value plus the least of the whole image.
template <class I>
class plus_least : public ps::detail::row_image<plus_least<I>, I> {
 public:
  plus_least(const I& image, ps::image_scratch& scratch, bool changes)
      : ps::detail::row_image<plus_least, I>(image, scratch, changes) {}
  [[nodiscard]] bool needs_all() const { return true; }
  template <class Pixels>
  void look_at(const Pixels& pixels) const {
    least_ = 255;
    for (std::size_t y = 0; y < pixels.height(); ++y)
      least_ = std::min(least_, *std::min_element(pixels.row(y), pixels.row(y) + pixels.row_values()));
  }
  void write_row(const std::uint8_t* from, std::uint8_t* to, std::size_t width) const {
    for (std::size_t i = 0; i < width * I::channels; ++i) to[i] = static_cast<std::uint8_t>(from[i] + least_);
  }

 private:
  mutable std::uint8_t least_ = 0;
};

}  // namespace

TEST_CASE(
    "image/detail/row_image: parts are those of the whole, and of the image itself where nothing changes") {
  const penstock_test::test_image<std::uint8_t, 3> image(
      {13, 7}, [](std::size_t x, std::size_t y, std::size_t c) { return 11 + x * 5 + y * 13 + c; }, 3);
  ps::image_scratch scratch;
  const plus_least<decltype(image)> changed(image, scratch, true), unchanged(image, scratch, false);
  CHECK(penstock_test::all_ways_agree(changed));
  CHECK(penstock_test::all_ways_agree(unchanged));
  CHECK(penstock_test::read_values(unchanged) == image.values());
  auto expected = image.values();
  for (std::uint8_t& value : expected) value = static_cast<std::uint8_t>(value + 11);
  CHECK(penstock_test::read_values(changed) == expected);
}

TEST_CASE("image/detail/row_image: bytes and gray values") {
  using ps::detail::to_byte;
  CHECK(to_byte(-1e9f) == 0);
  CHECK(to_byte(-1.0f) == 0);
  CHECK(to_byte(-0.5f) == 0);
  CHECK(to_byte(0.99f) == 0);
  CHECK(to_byte(254.99f) == 254);
  CHECK(to_byte(255.5f) == 255);
  CHECK(to_byte(256.0f) == 255);
  CHECK(to_byte(1e9f) == 255);
  int wrong = 0;
  for (int i = 0; i < 256; ++i) wrong += to_byte(static_cast<float>(i)) != i;
  CHECK(wrong == 0);
  const std::uint8_t white[] = {255, 255, 255}, red[] = {255, 0, 0}, blue[] = {0, 0, 255};
  CHECK(ps::detail::luma(white) == 254);  // 0.9999 of 255, as torchvision
  CHECK(ps::detail::luma(red) == 76);
  CHECK(ps::detail::luma(blue) == 29);
}

TEST_CASE("image/detail/row_image: a range is checked, and said") {
  ps::detail::check_range("turn", "the angle", 0.5, -0.5, 0.5);
  CHECK_THROWS_WITH(ps::detail::check_range("turn", "the angle", 0.75, -0.5, 0.5),
                    "penstock: turn: the angle is 0.75; pass a number from -0.5 to 0.5");
  CHECK_THROWS_AS(
      ps::detail::check_range("turn", "the angle", std::numeric_limits<double>::quiet_NaN(), 0, 1),
      ps::error);
}

}  // namespace row_image_test
