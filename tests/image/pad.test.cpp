// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/pad.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/resize_oracles.hpp"
#include "support/test_image.hpp"

#include <string>
#include <vector>

namespace pad_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("image/pad: values of torchvision") {
  image_call call;
  check_resize_oracles("pad", [&](const auto& image, const std::vector<std::string>& arguments) {
    ps::pad_options options;
    if (arguments[0] == "edge") options.mode = ps::padding_mode::edge;
    if (arguments[0] == "reflect") options.mode = ps::padding_mode::reflect;
    if (arguments[0] == "symmetric") options.mode = ps::padding_mode::symmetric;
    options.fill = std::stoi(arguments[1]);
    const auto side = [&](std::size_t i) { return std::stoi(arguments[i]); };
    return ps::pad(side(2), side(3), side(4), side(5), options)(image, call.at(0));
  });
}

TEST_CASE("image/pad: one, two or four numbers") {
  image_call call;
  const test_image<std::uint8_t, 3> image({5, 4}, 1);
  const auto all = ps::pad(2)(image, call.at(0));
  CHECK(all.size() == ps::image_size{9, 8});
  CHECK(read_values(all, {2, 2, 5, 4}) == image.values());
  const auto two = ps::pad(3, 1)(image, call.at(0));
  CHECK(two.size() == ps::image_size{11, 6});
  CHECK(read_values(two, {3, 1, 5, 4}) == image.values());
  const auto four = ps::pad(1, 2, 3, 4)(image, call.at(0));
  CHECK(four.size() == ps::image_size{9, 10});
  CHECK(read_values(four, {1, 2, 5, 4}) == image.values());
  CHECK(ps::pad(0)(image, call.at(0)).read({0, 0, 5, 4}).data() == image.read({0, 0, 5, 4}).data());

  const auto coloured = ps::pad(1, {.fill = {1, 2, 3}})(image, call.at(0));
  CHECK(read_values(coloured, {0, 0, 2, 1}) == std::vector<std::uint8_t>{1, 2, 3, 1, 2, 3});
  CHECK(all_ways_agree(coloured));
}

TEST_CASE("image/pad: paddings convert from numbers") {
  const auto sides = [](const ps::image_padding& p) {
    return std::vector<std::uint32_t>{p.left, p.top, p.right, p.bottom};
  };
  CHECK(sides(4) == std::vector<std::uint32_t>{4, 4, 4, 4});
  CHECK(sides({1, 2}) == std::vector<std::uint32_t>{1, 2, 1, 2});
  CHECK(sides({1, 2, 3, 4}) == std::vector<std::uint32_t>{1, 2, 3, 4});
  CHECK(sides({}) == std::vector<std::uint32_t>{0, 0, 0, 0});
}

TEST_CASE("image/pad: wrong arguments") {
  CHECK_THROWS_AS(ps::pad(-1), ps::error);
  CHECK_THROWS_AS(ps::pad(0, -1), ps::error);
  CHECK_THROWS_AS(ps::pad(0, 0, 0, (1 << 20) + 1), ps::error);
  image_call call;
  const test_image<std::uint8_t, 3> image({5, 4}, 1);
  CHECK_THROWS_AS(ps::pad(1, {.fill = {1, 2}})(image, call.at(0)), ps::error);
  CHECK_THROWS_AS(ps::pad(1, {.fill = 300})(image, call.at(0)), ps::error);
}

TEST_CASE("image/pad: images of 16 bits and of floats, and in a pipeline") {
  image_call call;
  const test_image<float, 1> depth({5, 4}, 1);
  CHECK(all_ways_agree(ps::pad(2, {.fill = 0.5})(depth, call.at(0))));
  const std::vector<test_image<std::uint16_t, 1>> images{{{5, 4}, 1}, {{5, 4}, 2}};
  const auto plan = ps::from(images) | ps::map(ps::pad(1, {.fill = 999})) | ps::batch(2);
  for (auto&& b : plan.epoch(0)) {
    const auto pixels = b.values();
    CHECK(pixels.shape() == ps::extents(2, 6, 7, 1));
    CHECK(pixels(1, 0, 0, 0) == 999);
    CHECK(pixels(1, 1, 1, 0) == images[1].at(0, 0, 0));
  }
}

}  // namespace pad_test
