// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/geometry.hpp>

#include <penstock/image/crop.hpp>
#include <penstock/image/flip.hpp>
#include <penstock/image/random_resized_crop.hpp>
#include <penstock/image/rotate.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace image_geometry_test {

namespace ps = penstock;
using penstock_test::test_image;

namespace {

bool near(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) > 1e-3f) return false;
  return true;
}

/// A dark image with a bright rectangle, whose place in the result is measured.
test_image<std::uint8_t, 1> with_rectangle(ps::image_size size, std::uint32_t x0, std::uint32_t y0,
                                           std::uint32_t x1, std::uint32_t y1) {
  return {size, [=](std::size_t x, std::size_t y, std::size_t) {
            return x >= x0 && x < x1 && y >= y0 && y < y1 ? 255 : 0;
          }};
}
template <class I>
std::vector<float> bright_box(const I& image) {
  const auto pixels = image.read(ps::whole_of(image.size()));
  float box[] = {1e9f, 1e9f, -1, -1};
  for (std::size_t y = 0; y < pixels.height(); ++y)
    for (std::size_t x = 0; x < pixels.width(); ++x)
      if (*pixels.at(x, y) > 127) {
        box[0] = std::min(box[0], static_cast<float>(x)), box[1] = std::min(box[1], static_cast<float>(y));
        box[2] = std::max(box[2], static_cast<float>(x + 1)),
        box[3] = std::max(box[3], static_cast<float>(y + 1));
      }
  return {box[0], box[1], box[2], box[3]};
}
bool close(const std::vector<float>& a, const std::vector<float>& b, float maximum) {
  for (std::size_t i = 0; i < 4; ++i)
    if (!(std::abs(a[i] - b[i]) <= maximum)) return false;
  return true;
}

}  // namespace

TEST_CASE("image/geometry: crop, resize and mirror, one after another") {
  ps::image_geometry places({100, 50});
  CHECK(places.size() == ps::image_size{100, 50});
  CHECK(places.apply({3, 4}) == ps::image_point{3, 4});
  places.crop({10, 20, 40, 20}).resize({80, 20});
  CHECK(places.size() == ps::image_size{80, 20});
  CHECK(places.apply({10, 20}) == ps::image_point{0, 0});
  CHECK(places.apply({50, 40}) == ps::image_point{80, 20});
  places.mirror(ps::mirroring::horizontal);
  CHECK(places.apply({10, 20}) == ps::image_point{80, 0});
  places.mirror(ps::mirroring::vertical).mirror(ps::mirroring::none);
  CHECK(places.apply({10, 20}) == ps::image_point{80, 20});
  std::vector<float> boxes{10, 20, 20, 30, 30, 30, 50, 40};
  places.boxes(boxes);
  CHECK(near(boxes, {60, 10, 80, 20, 0, 0, 40, 10}));
  std::vector<float> points{10, 20, 50, 40};
  places.points(points);
  CHECK(near(points, {80, 20, 0, 0}));
  CHECK(ps::image_geometry({10, 10}).crop(-4, -3, {20, 20}).apply({0, 0}) == ps::image_point{4, 3});
  CHECK(ps::image_geometry({0, 10}).resize({4, 4}).size() == ps::image_size{4, 4});
}

TEST_CASE("image/geometry: boxes go where the pixels go") {
  ps::image_scratch scratch, two, three;
  const auto image = with_rectangle({160, 120}, 60, 40, 100, 90);
  const std::vector<float> box{60, 40, 100, 90};
  const auto cropping = ps::random_resized_crop(96, 128, {.scale = {0.6, 1}});
  const auto flip = ps::horizontal_flip();
  const auto turn = ps::rotate({-40, 40}, {.how = ps::interpolation::bilinear, .expand = true});
  int mirrored = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const ps::call<ps::image_scratch> c{{0, i}, 0, 1, 2, scratch}, d{{0, i}, 0, 1, 3, two},
        e{{0, i}, 0, 1, 4, three};
    ps::rng of_crop = c.random(), of_flip = d.random();
    ps::image_geometry places(image.size());
    places.crop(cropping.choose(image.size(), of_crop)).resize({128, 96});
    const ps::mirroring how = flip.choose(of_flip);
    mirrored += how == ps::mirroring::horizontal ? 1 : 0;
    places.mirror(how);
    const auto made = flip(cropping(image, c), d);
    std::vector<float> moved = box;
    places.boxes(moved);
    REQUIRE(places.clip_boxes(moved) == 1);
    REQUIRE(close(moved, bright_box(made), 1.01f));

    const auto turned = turn(made, e);
    places.warp(turned.matrix(), turned.size());
    REQUIRE(places.size() == turned.size());
    // four corners of the box, not clipped, and their bounding box
    std::vector<float> corners{60, 40, 100, 40, 60, 90, 100, 90};
    places.points(corners);
    std::vector<float> whole = box;
    places.boxes(whole);
    for (std::size_t k = 0; k < 8; k += 2) {
      REQUIRE((corners[k] >= whole[0] - 1e-3f && corners[k] <= whole[2] + 1e-3f));
      REQUIRE((corners[k + 1] >= whole[1] - 1e-3f && corners[k + 1] <= whole[3] + 1e-3f));
    }
    const auto seen = bright_box(turned);
    REQUIRE((seen[0] >= whole[0] - 1.5f && seen[1] >= whole[1] - 1.5f && seen[2] <= whole[2] + 1.5f &&
             seen[3] <= whole[3] + 1.5f));
  }
  CHECK((mirrored > 8 && mirrored < 32));
  // a box that stays within is found where it is said to be
  const auto small = with_rectangle({80, 80}, 30, 34, 50, 44);
  const auto quarter = ps::rotate_by(90)(small, {{0, 0}, 0, 1, 2, scratch});
  std::vector<float> moved{30, 34, 50, 44};
  ps::image_geometry({80, 80}).warp(quarter.matrix(), quarter.size()).boxes(moved);
  CHECK(near(moved, bright_box(quarter)));
}

TEST_CASE("image/geometry: boxes are cut at the borders, and dropped") {
  const ps::image_geometry places({20, 10});
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> boxes{-5, -5, 5,    5, 20, 0, 25, 5, 3, 3, 4, 4, 18, 8,
                           30, 30, none, 0, 5,  5, 7,  2, 6, 3, 1, 1, 1,  5};
  std::vector<std::uint32_t> index(7, 99);
  std::vector<float> copy = boxes;
  REQUIRE(places.clip_boxes(boxes, 2, index) == 2);
  boxes.resize(8);
  CHECK(near(boxes, {0, 0, 5, 5, 18, 8, 20, 10}));
  CHECK((index[0] == 0 && index[1] == 3));
  REQUIRE(places.clip_boxes(copy) == 3);
  CHECK(places.contains({0, 0}));
  CHECK(!places.contains({20, 0}));
  CHECK(!places.contains({0, 10}));
  CHECK(!places.contains({-0.1, 5}));
}

TEST_CASE("image/geometry: boxes are cut at the borders, and all are kept") {
  const ps::image_geometry places({20, 10});
  std::vector<float> boxes{-5, -5, 5, 5, 21, 3, 25, 30, 3, 3, 4, 4, 2, -9, 6, -1};
  places.clamp_boxes(boxes);
  CHECK(near(boxes, {0, 0, 5, 5, 20, 3, 20, 10, 3, 3, 4, 4, 2, 0, 6, 0}));
}

TEST_CASE("image/geometry: what is refused") {
  ps::image_geometry places({20, 10});
  std::vector<float> three(3), five(5);
  std::vector<float> eight(8);
  std::vector<std::uint32_t> one(1);
  CHECK_THROWS_AS(places.points(three), ps::error);
  CHECK_THROWS_AS(places.boxes(five), ps::error);
  CHECK_THROWS_AS(places.clip_boxes(five), ps::error);
  CHECK_THROWS_AS(places.clamp_boxes(five), ps::error);
  CHECK_THROWS_AS(places.clip_boxes(eight, 0, one), ps::error);
  CHECK_THROWS_AS(places.warp({.a = 0}, {5, 5}), ps::error);
}

TEST_CASE("image/geometry: a place with a number that is not finite is nowhere") {
  constexpr float none = std::numeric_limits<float>::quiet_NaN(),
                  far = std::numeric_limits<float>::infinity();
  ps::image_geometry places({100, 50});
  places.mirror(ps::mirroring::horizontal);
  for (const float bad : {none, far, -far})
    for (std::size_t at = 0; at < 4; ++at) {
      std::vector<float> numbers{10, 20, 30, 40, 10, 20, 30, 40};
      numbers[at] = bad;
      std::vector<float> points = numbers;
      places.boxes(numbers);
      places.clamp_boxes(numbers);
      for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(numbers[i]));
      CHECK(std::vector<float>(numbers.begin() + 4, numbers.end()) == std::vector<float>{70, 20, 90, 40});
      CHECK(places.clip_boxes(numbers) == 1);
      places.points(points);
      for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(points[i]) == (i / 2 == at / 2));
    }
}

}  // namespace image_geometry_test
