// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/random_erasing.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace random_erasing_test {

namespace ps = penstock;
using penstock_test::all_ways_agree;
using penstock_test::read_values;
using penstock_test::test_image;

TEST_CASE("image/random_erasing: rectangles have the areas and ratios that are asked for") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 3> image({200, 150}, 3);
  const auto erasing = ps::random_erasing({.p = 0.25, .value = 3});
  int erased = 0, left = 0, right = 0;
  double smallest = 1, largest = 0, flattest = 10, steepest = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const ps::image_part box = erasing(image, {{0, i}, 0, 1, 0, scratch}).box();
    if (box.width == 0) continue;
    ++erased;
    REQUIRE(box.within(image.size()));
    REQUIRE((box.width < 200 && box.height < 150));
    const double share = static_cast<double>(box.width) * box.height / (200.0 * 150);
    const double ratio = static_cast<double>(box.height) / box.width;
    smallest = std::min(smallest, share), largest = std::max(largest, share);
    flattest = std::min(flattest, ratio), steepest = std::max(steepest, ratio);
    left += box.x == 0 ? 1 : 0;
    right += box.x + box.width == 200 ? 1 : 0;
  }
  CHECK(std::abs(erased - 1000) < 150);  // more than 5 standard deviations
  CHECK((smallest > 0.019 && smallest < 0.03));
  CHECK((largest > 0.31 && largest < 0.34));
  CHECK((flattest > 0.28 && flattest < 0.33));
  CHECK((steepest > 3.0 && steepest < 3.45));
  CHECK((left > 0 && right > 0));
}

TEST_CASE("image/random_erasing: the draw belongs to the sample, and pixels are painted") {
  ps::image_scratch scratch, other;
  const test_image<std::uint8_t, 3> image({64, 48}, 3);
  const test_image<float, 3> floats({64, 48}, 3);
  const auto erasing = ps::random_erasing({.p = 1, .value = {1, 2, 3}});
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto a = erasing(image, {{1, i}, 0, 1, 0, scratch}), b = erasing(image, {{1, i}, 0, 1, 0, other});
    CHECK(a.box() == b.box());
    CHECK(a.box() == erasing(floats, {{1, i}, 0, 1, 0, scratch}).box());
    CHECK(all_ways_agree(a));
    REQUIRE(a.box().width != 0);
    CHECK(read_values(a, {a.box().x, a.box().y, 1, 1}) == std::vector<std::uint8_t>{1, 2, 3});
  }
  const auto noise = ps::random_erasing({.p = 1, .value = ps::random_pixels});
  CHECK(all_ways_agree(noise(floats, {{1, 3}, 0, 1, 0, scratch})));
  CHECK(read_values(noise(image, {{1, 3}, 0, 1, 0, scratch})) ==
        read_values(noise(image, {{1, 3}, 0, 1, 0, other})));
}

TEST_CASE("image/random_erasing: p is 0, or nothing fits") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 1> image({40, 40}, 3), one({1, 1}, 3), line({1, 90}, 3), none({0, 0}, 3);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const ps::call<ps::image_scratch> c{{0, i}, 0, 1, 0, scratch};
    REQUIRE(ps::random_erasing({.p = 0})(image, c).box().width == 0);
    REQUIRE(ps::random_erasing({.p = 1, .scale = {1, 1}, .ratio = {1, 1}})(image, c).box().width == 0);
    for (const auto& small : {one, line, none})
      REQUIRE(read_values(ps::random_erasing({.p = 1})(small, c)) == small.values());
    REQUIRE(ps::random_erasing({.p = 1, .scale = {0, 0}})(image, c).box().width == 0);
  }
}

TEST_CASE("image/random_erasing: what is refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  for (const double p : {-0.1, 1.1, nan, inf}) CHECK_THROWS_AS(ps::random_erasing({.p = p}), ps::error);
  for (const std::array<double, 2> scale : {std::array{-0.1, 0.5}, std::array{0.5, 1.5}, std::array{0.6, 0.5},
                                            std::array{nan, 0.5}, std::array{0.1, nan}})
    CHECK_THROWS_AS(ps::random_erasing({.scale = scale}), ps::error);
  for (const std::array<double, 2> ratio : {std::array{0.0, 1.0}, std::array{2.0, 1.0}, std::array{1.0, inf},
                                            std::array{nan, 1.0}, std::array{-1.0, 1.0}})
    CHECK_THROWS_AS(ps::random_erasing({.ratio = ratio}), ps::error);
}

}  // namespace random_erasing_test
