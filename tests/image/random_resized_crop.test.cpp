// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/random_resized_crop.hpp>

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
#include <cmath>
#include <limits>
#include <vector>

namespace random_resized_crop_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("image/random_resized_crop: rectangles have the share and the shape that was asked for") {
  const auto crop = ps::random_resized_crop(8);
  const ps::image_size size{500, 375};
  double least = 1, maximum = 0, least_ratio = 9, max_ratio = 0, mean = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    ps::rng random(1, 0, i);
    const ps::image_part part = crop.choose(size, random);
    REQUIRE(part.within(size));
    const double share = double(part.width) * part.height / (500.0 * 375),
                 ratio = double(part.width) / part.height;
    least = std::min(least, share), maximum = std::max(maximum, share), mean += share / 4000;
    least_ratio = std::min(least_ratio, ratio), max_ratio = std::max(max_ratio, ratio);
  }
  CHECK(least > 0.07);
  CHECK(least < 0.1);
  CHECK(maximum > 0.95);
  CHECK(mean > 0.4);
  CHECK(mean < 0.56);
  CHECK(least_ratio > 0.73);
  CHECK(least_ratio < 0.77);
  CHECK(max_ratio > 1.30);
  CHECK(max_ratio < 1.37);
}

TEST_CASE("image/random_resized_crop: the rectangle in the middle, if none of ten tries lies in the image") {
  const auto crop = ps::random_resized_crop(8, {.scale = {1, 1}});
  const auto chosen = [&](ps::image_size size) {
    ps::rng random(1, 0, 0);
    return crop.choose(size, random);
  };
  // from torchvision's get_params
  CHECK(chosen({1000, 10}) == ps::image_part{493, 0, 13, 10});
  CHECK(chosen({10, 1000}) == ps::image_part{0, 493, 10, 13});
  CHECK(chosen({1, 1}) == ps::image_part{0, 0, 1, 1});
  CHECK(chosen({1, 100}) == ps::image_part{0, 49, 1, 1});
  const auto square = ps::random_resized_crop(8, {.scale = {1, 1}, .ratio = {1.1, 1.2}});
  ps::rng random(1, 0, 0);
  CHECK(square.choose({115, 100}, random).within({115, 100}));
  const auto wide = ps::random_resized_crop(8, {.ratio = {40, 40}});
  ps::rng again(1, 0, 0);
  CHECK(wide.choose({10, 10}, again) == ps::image_part{0, 4, 10, 1});
}

TEST_CASE("image/random_resized_crop: is a crop and a resize, and reads the crop only") {
  image_call call, other;
  const test_image<std::uint8_t, 3> image({60, 45}, 1, 3);
  const auto random_crop = ps::random_resized_crop(16, 20, {.how = ps::interpolation::bicubic});
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto found = random_crop(image, call.at(i));
    CHECK(image.reads() == 0);
    CHECK(found.size() == ps::image_size{20, 16});
    ps::rng random = call.at(i).random();
    const ps::image_part part = random_crop.choose(image.size(), random);
    const auto values = read_values(found);
    CHECK(image.last_part() == part);
    const auto cropped = ps::crop(part.x, part.y, part.width, part.height)(image, other.at(i));
    CHECK(values ==
          read_values(ps::resize(16, 20, {.how = ps::interpolation::bicubic})(cropped, other.at(i))));
    CHECK(all_ways_agree(found));
    image.forget_reads();
  }
  const auto work = [&] {
    for (std::uint64_t i = 0; i < 20; ++i) (void)random_crop(image, call.at(i)).read({0, 0, 20, 16});
  };
  work();
  CHECK(allocations_of(work) == 0);
}

TEST_CASE("image/random_resized_crop: wrong arguments") {
  using options = ps::random_resized_crop_options;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(ps::random_resized_crop(0), ps::error);
  CHECK_THROWS_AS(ps::random_resized_crop(5, -1), ps::error);
  for (const ps::real_range wrong :
       {ps::real_range{0, 1}, ps::real_range{-1, 1}, ps::real_range{1, 0.5}, ps::real_range{nan, 1},
        ps::real_range{0.5, nan}, ps::real_range{0.5, inf}, ps::real_range{inf, inf}}) {
    CHECK_THROWS_AS(ps::random_resized_crop(5, options{.scale = wrong}), ps::error);
    CHECK_THROWS_AS(ps::random_resized_crop(5, options{.ratio = wrong}), ps::error);
  }
  CHECK_THAT(error_of([] {
               (void)ps::random_resized_crop(5, {.scale = {0.5, 1.5}});
             }),
             contains("scale above 1"));
  CHECK_THAT(error_of([] { (void)ps::random_resized_crop(5, {.ratio = {0, 1}}); }), contains("ratio"));
  image_call call;
  const test_image<std::uint8_t, 1> empty({0, 0}, 1);
  CHECK_THROWS_AS(ps::random_resized_crop(5)(empty, call.at(0)), ps::error);
}

TEST_CASE("image/random_resized_crop: an image and its mask stay together by a key") {
  using sample = ps::record<ps::field<"jpg", test_image<std::uint8_t, 3>>,
                            ps::field<"png", test_image<std::uint8_t, 1>>>;
  std::vector<sample> samples;
  for (std::uint32_t i = 0; i < 30; ++i) {
    const ps::image_size size{40 + i % 7, 50 - i};
    const auto value = [](std::size_t x, std::size_t y, std::size_t) { return (3 * x + 5 * y) % 256; };
    samples.push_back(
        sample(test_image<std::uint8_t, 3>(size, value), test_image<std::uint8_t, 1>(size, value)));
  }
  const ps::random_resized_crop_options nearest{.how = ps::interpolation::nearest};
  const auto plan =
      ps::from(samples) | ps::map<"jpg">(ps::random_resized_crop(12, nearest), ps::key("crop")) |
      ps::map<"png">(ps::random_resized_crop(12, nearest), ps::key("crop")) | ps::batch(6) | ps::seed(5);
  std::vector<std::uint8_t> first;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    std::vector<std::uint8_t> images, masks;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const auto a = ps::get<"jpg">(b).flat();
      for (std::size_t i = 0; i < a.size(); i += 3) images.push_back(a[i]);
      const auto m = ps::get<"png">(b).flat();
      masks.insert(masks.end(), m.begin(), m.end());
    }
    CHECK(images == masks);
    if (first.empty()) first = images;
    CHECK(images == first);
  }
}

}  // namespace random_resized_crop_test
