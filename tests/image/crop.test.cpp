// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/crop.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/count_allocations.hpp"
#include "support/resize_oracles.hpp"
#include "support/test_image.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace image_crop_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// Values that name their place, so that a crop shows where it was made.
template <class T = std::uint16_t>
test_image<T, 1> places(ps::image_size size) {
  return {size, [](std::size_t x, std::size_t y, std::size_t) { return x + 100 * y; }};
}

}  // namespace

TEST_CASE("image/crop: values of torchvision") {
  image_call call;
  check_resize_oracles("crop", [&](const auto& image, const std::vector<std::string>& a) {
    return ps::crop(std::stoi(a[0]), std::stoi(a[1]), std::stoi(a[2]), std::stoi(a[3]))(image, call.at(0));
  });
  check_resize_oracles("center_crop", [&](const auto& image, const std::vector<std::string>& a) {
    return ps::center_crop(std::stoi(a[0]), std::stoi(a[1]))(image, call.at(0));
  });
}

TEST_CASE("image/crop: a rectangle is read where it lies, and nothing else") {
  image_call call;
  const test_image<std::uint8_t, 3> image({20, 10}, 1, 5);
  const auto part = ps::crop(3, 2, 10, 7)(image, call.at(0));
  CHECK(part.size() == ps::image_size{10, 7});
  CHECK(part.read({1, 1, 4, 3}).data() == image.read({4, 3, 4, 3}).data());
  CHECK(all_ways_agree(part));
  CHECK(&part.memory() == &call.scratch);
  const auto twice = ps::crop(1, 1, 2, 2)(part, call.at(0));
  (void)twice.read({1, 1, 1, 1});
  CHECK(image.last_part() == ps::image_part{5, 4, 1, 1});
  CHECK(allocations_of([&] { (void)ps::crop(1, 1, 2, 2)(part, call.at(0)).read({0, 0, 2, 2}); }) == 0);
}

TEST_CASE("image/crop: beyond the image, or empty, is refused") {
  image_call call;
  const test_image<std::uint8_t, 3> image({20, 10}, 1);
  CHECK_THAT(error_of([&] { (void)ps::crop(11, 0, 10, 5)(image, call.at(0)); }),
             contains("a crop of 10 x 5 at (11, 0) from an image of 20 x 10"));
  CHECK_THROWS_AS(ps::crop(0, 6, 10, 5)(image, call.at(0)), ps::error);
  CHECK(ps::crop(10, 5, 10, 5)(image, call.at(0)).size() == ps::image_size{10, 5});
  CHECK_THROWS_AS(ps::crop(0, 0, 0, 5), ps::error);
  CHECK_THROWS_AS(ps::crop(0, 0, 5, 0), ps::error);
  CHECK_THROWS_AS(ps::crop(-1, 0, 5, 5), ps::error);
  CHECK_THROWS_AS(ps::center_crop(0), ps::error);
  CHECK_THROWS_AS(ps::center_crop(3, -4), ps::error);
  CHECK_THROWS_AS(ps::center_crop((1 << 20) + 1), ps::error);
  CHECK_THROWS_AS(ps::random_crop(0), ps::error);
  CHECK_THROWS_AS(ps::random_crop(4, {.padding = -1}), ps::error);
  CHECK_THAT(error_of([&] { (void)ps::random_crop(11)(image, call.at(0)); }),
             contains("a crop of 11 x 11 from an image of 20 x 10; write random_crop(size, {.pad_if_needed"));
}

TEST_CASE("image/crop: the middle is rounded as Python rounds") {
  CHECK(ps::detail::half_to_even(0) == 0);
  CHECK(ps::detail::half_to_even(1) == 0);
  CHECK(ps::detail::half_to_even(3) == 2);
  CHECK(ps::detail::half_to_even(5) == 2);
  CHECK(ps::detail::half_to_even(7) == 4);
  CHECK(ps::detail::half_to_even(8) == 4);
  CHECK(ps::detail::centre_of(10, 5) == 2);
  CHECK(ps::detail::centre_of(5, 10) == -2);
  image_call call;
  const test_image<std::uint8_t, 3> image({20, 10}, 1);
  const auto middle = ps::center_crop(4, 6)(image, call.at(0));
  (void)middle.read({0, 0, 6, 4});
  CHECK(image.last_part() == ps::image_part{7, 3, 6, 4});
  CHECK(ps::center_crop(5)(image, call.at(0)).size() == ps::image_size{5, 5});
}

TEST_CASE("image/crop: a random rectangle is anywhere, and nowhere else") {
  image_call call;
  const auto image = places({9, 7});
  std::set<std::uint16_t> corners;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const auto part = ps::random_crop(5, 6)(image, call.at(i));
    CHECK(part.size() == ps::image_size{6, 5});
    const auto corner = read_values(part, {0, 0, 1, 1})[0];
    CHECK(read_values(part, {5, 4, 1, 1})[0] == corner + 405);
    corners.insert(corner);
  }
  CHECK(corners == std::set<std::uint16_t>{0, 1, 2, 3, 100, 101, 102, 103, 200, 201, 202, 203});
  CHECK_FALSE(image.read_outside());
  CHECK(read_values(ps::random_crop(7, 9)(image, call.at(0))) == image.values());
}

TEST_CASE("image/crop: padding comes first") {
  image_call call;
  const auto image = places({4, 4});
  std::set<std::pair<std::int64_t, std::int64_t>> corners;
  const auto padded = ps::random_crop(4, {.padding = {1, 0, 0, 2}});
  for (std::uint64_t i = 0; i < 200; ++i) {
    ps::rng random = call.at(i).random();
    corners.insert(padded.choose(image.size(), random));
    CHECK(all_ways_agree(padded(image, call.at(i))));
  }
  CHECK(corners ==
        std::set<std::pair<std::int64_t, std::int64_t>>{{-1, 0}, {0, 0}, {-1, 1}, {0, 1}, {-1, 2}, {0, 2}});

  // an image that is too small gets what it lacks on both sides
  corners.clear();
  const auto grown = ps::random_crop(5, 6, {.pad_if_needed = true, .fill = 7});
  for (std::uint64_t i = 0; i < 200; ++i) {
    ps::rng random = call.at(i).random();
    corners.insert(grown.choose(image.size(), random));
  }
  CHECK(corners == std::set<std::pair<std::int64_t, std::int64_t>>{
                       {-2, -1}, {-1, -1}, {0, -1}, {-2, 0}, {-1, 0}, {0, 0}});
  const auto values = read_values(grown(image, call.at(3)));
  CHECK(std::count(values.begin(), values.end(), 7) == 30 - 16);

  const auto edges = ps::random_crop(8, {.padding = 2, .mode = ps::padding_mode::edge})(image, call.at(1));
  CHECK(read_values(edges, {0, 0, 3, 1}) == std::vector<std::uint16_t>{0, 0, 0});
  CHECK(read_values(edges, {5, 7, 3, 1}) == std::vector<std::uint16_t>{303, 303, 303});
}

TEST_CASE("image/crop: an image and its mask stay together by a key, with any number of workers") {
  using sample = ps::record<ps::field<"jpg", test_image<std::uint16_t, 1>>,
                            ps::field<"png", test_image<std::uint16_t, 1>>>;
  std::vector<sample> samples;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const ps::image_size size{10 + i % 7, 9 + i % 5};
    samples.push_back(sample(places(size), places(size)));
  }
  const auto plan = ps::from(samples) | ps::map<"jpg">(ps::random_crop(8), ps::key("crop")) |
                    ps::map<"png">(ps::random_crop(8, {.fill = 9}), ps::key("crop")) | ps::batch(8) |
                    ps::seed(5);
  std::vector<std::uint16_t> first;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    std::vector<std::uint16_t> images, masks;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const auto a = ps::get<"jpg">(b).flat();
      images.insert(images.end(), a.begin(), a.end());
      const auto m = ps::get<"png">(b).flat();
      masks.insert(masks.end(), m.begin(), m.end());
    }
    CHECK(images == masks);
    if (first.empty()) first = images;
    CHECK(images == first);
  }
  CHECK(std::set<std::uint16_t>(first.begin(), first.end()).size() > 64);
}

}  // namespace image_crop_test
