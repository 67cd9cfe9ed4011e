// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/rotate.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"
#include "support/warp_oracles.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

namespace rotate_test {

namespace ps = penstock;
using penstock_test::all_ways_agree;
using penstock_test::read_values;
using penstock_test::test_image;

namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

template <std::size_t Channels>
void compare(const penstock_test::warp_case& one) {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  const auto image = one.image<Channels>();
  const auto& n = one.numbers;
  const auto check = [&](const auto& made) {
    INFO(one.kind << ' ' << to_string(one.how) << ' ' << one.width << 'x' << one.height << ' ' << n[0] << ' '
                  << n[1] << ' ' << n[3] << ' ' << n[4] << ' ' << one.expand);
    REQUIRE(made.size() == ps::image_size{one.made_width, one.made_height});
    const auto got = read_values(made), expected = one.expected();
    // Where a place is halfway between pixels, either is the nearest. After a quarter turn of sides of which
    // only one is even all are, and torchvision's choice is that of its rounding errors.
    const bool nearest = one.how == ps::interpolation::nearest;
    if (!(nearest && one.expand && n[0] == 90 && (one.width + one.height) % 2 == 1))
      CHECK(penstock_test::differing(got, expected, 1) <= (nearest ? expected.size() / 100 : 0));
    CHECK(all_ways_agree(made));
  };
  if (one.kind == "rotate")
    check(ps::rotate_by(n[0], {one.how, one.expand, one.fill})(image, c));
  else
    check(ps::affine_by({n[0], {n[1], n[2]}, n[3], {n[4], n[5]}}, {one.how, one.fill})(image, c));
}

}  // namespace

TEST_CASE("image/rotate: as torchvision turns, shears and moves") {
  std::size_t compared = 0;
  for (const auto& one : penstock_test::warp_cases()) {
    if (one.kind != "rotate" && one.kind != "affine") continue;
    if (one.channels == 3)
      compare<3>(one);
    else
      compare<1>(one);
    ++compared;
  }
  CHECK(compared == 100);
}

TEST_CASE("image/rotate: quarter turns move whole pixels") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 1}, 0, 1, 0, scratch};
  const test_image<std::uint8_t, 3> image({14, 8}, 5);
  for (const auto how : {ps::interpolation::nearest, ps::interpolation::bilinear}) {
    const auto left = ps::rotate_by(90, {.how = how, .expand = true})(image, c);
    REQUIRE(left.size() == ps::image_size{8, 14});
    const auto turned = read_values(left);
    for (std::size_t y = 0; y < 14; ++y)
      for (std::size_t x = 0; x < 8; ++x) REQUIRE(turned[(y * 8 + x) * 3 + 1] == image.at(13 - y, x, 1));
    CHECK(read_values(ps::rotate_by(0, {.how = how})(image, c)) == image.values());
    CHECK(read_values(ps::rotate_by(360, {.how = how, .expand = true})(image, c)).size() == 14 * 8 * 3);
    std::vector<std::uint8_t> reversed;
    for (std::size_t y = 8; y-- > 0;)
      for (std::size_t x = 14; x-- > 0;)
        for (std::size_t k = 0; k < 3; ++k) reversed.push_back(image.at(x, y, k));
    CHECK(read_values(ps::rotate_by(-180, {.how = how})(image, c)) == reversed);
  }
}

TEST_CASE("image/rotate: the angle belongs to the sample, and masks share it") {
  ps::image_scratch scratch, other;
  const test_image<std::uint8_t, 3> image({33, 21}, 5);
  const test_image<std::uint8_t, 1> mask({33, 21}, 6);
  const auto turn = ps::rotate({-30, 60}, {.how = ps::interpolation::bilinear});
  const auto turn_mask = ps::rotate({-30, 60});
  double least = 1, maximum = -1;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const ps::call<ps::image_scratch> c{{0, i}, 0, 1, 4, scratch}, again{{0, i}, 0, 1, 4, other};
    const auto made = turn(image, c);
    REQUIRE(made.matrix() == turn_mask(mask, again).matrix());
    const double angle = std::atan2(-made.matrix().b, made.matrix().a) * 180 / std::numbers::pi;
    least = std::min(least, angle), maximum = std::max(maximum, angle);
    if (i < 5) {
      const auto kept = read_values(made);
      CHECK(kept == read_values(turn(image, again)));
      CHECK(all_ways_agree(turn_mask(mask, again)));
    }
  }
  CHECK((least >= -60.0 && maximum <= 60.0 && maximum - least > 80));
}

TEST_CASE("image/rotate: affine draws within its ranges") {
  ps::image_scratch scratch;
  const test_image<float, 1> image({100, 50}, 5);
  const ps::affine_options options{.translate = {0.1, 0.2}, .scale = {0.5, 2}};
  double least = 10, maximum = 0, right = 0, down = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    ps::rng random(1, 0, i);
    const ps::affine_change change = ps::detail::draw_affine(options, {100, 50}, random);
    REQUIRE(change.degrees == 0);
    REQUIRE((change.shear[0] == 0 && change.shear[1] == 0));
    REQUIRE(change.translate.x == std::nearbyint(change.translate.x));
    least = std::min(least, change.scale), maximum = std::max(maximum, change.scale);
    right = std::max(right, std::abs(change.translate.x)),
    down = std::max(down, std::abs(change.translate.y));
  }
  CHECK((least >= 0.5 && least < 0.52 && maximum < 2 && maximum > 1.97));
  CHECK((right == 10 && down == 10));
  const auto some = ps::affine({.degrees = {-10, 10},
                                .translate = {0.1, 0.1},
                                .scale = {0.9, 1.1},
                                .shear = {-5, 5},
                                .shear_y = {1, 2},
                                .how = ps::interpolation::bilinear,
                                .fill = 0.5});
  for (std::uint64_t i = 0; i < 5; ++i) {
    const ps::call<ps::image_scratch> c{{0, i}, 0, 1, 4, scratch};
    CHECK(all_ways_agree(some(image, c)));
    CHECK(some(image, c).size() == image.size());
  }
}

TEST_CASE("image/rotate: what is refused") {
  for (const std::array<double, 2> range :
       {std::array{1.0, 0.0}, std::array{no_number, 1.0}, std::array{0.0, inf}, std::array{-inf, inf}}) {
    CHECK_THROWS_AS(ps::rotate(range), ps::error);
    CHECK_THROWS_AS(ps::affine({.degrees = range}), ps::error);
    CHECK_THROWS_AS(ps::affine({.scale = range}), ps::error);
    CHECK_THROWS_AS(ps::affine({.shear = range}), ps::error);
    CHECK_THROWS_AS(ps::affine({.shear_y = range}), ps::error);
  }
  for (const double x : {no_number, inf, -inf}) {
    CHECK_THROWS_AS(ps::rotate_by(x), ps::error);
    CHECK_THROWS_AS(ps::affine_by({.degrees = x}), ps::error);
    CHECK_THROWS_AS(ps::affine_by({.scale = x}), ps::error);
    CHECK_THROWS_AS(ps::affine({.translate = {x, 0}}), ps::error);
  }
  CHECK_THROWS_AS(ps::affine({.translate = {0, 1.5}}), ps::error);
  CHECK_THROWS_AS(ps::affine({.translate = {-0.5, 0}}), ps::error);
  CHECK_THROWS_AS(ps::affine({.scale = {0, 1}}), ps::error);
  CHECK_THROWS_AS(ps::affine({.shear = {-95, 0}}), ps::error);
  CHECK_THROWS_AS(ps::affine_by({.scale = 0}), ps::error);
  CHECK_THROWS_AS(ps::affine_by({.shear = {90, 0}}), ps::error);
  for (const auto how : {ps::interpolation::bicubic, ps::interpolation::area}) {
    CHECK_THROWS_AS(ps::rotate_by(4, {.how = how}), ps::error);
    CHECK_THROWS_AS(ps::rotate({0, 4}, {.how = how}), ps::error);
    CHECK_THROWS_AS(ps::affine({.how = how}), ps::error);
    CHECK_THROWS_AS(ps::affine_by({}, {.how = how}), ps::error);
  }
}

}  // namespace rotate_test
