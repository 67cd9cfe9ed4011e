// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/aspect_buckets.hpp>

#include <penstock/image/geometry.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/bucket_by.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/resize_oracles.hpp"
#include "support/test_image.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace aspect_buckets_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

using sides = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

sides sides_of(const ps::aspect_buckets& buckets) {
  sides all;
  for (const ps::image_size& size : buckets.sizes()) all.emplace_back(size.width, size.height);
  return all;
}

ps::image_size size_of(std::uint64_t i) {
  ps::rng random(3, 0, i);
  return {static_cast<std::uint32_t>(20 + random.below(100)),
          static_cast<std::uint32_t>(20 + random.below(100))};
}

}  // namespace

TEST_CASE("image/aspect_buckets: sizes are those of kohya's trainer, and so is the choice") {
  const ps::aspect_buckets buckets(512 * 512);
  // make_bucket_resolutions((512, 512), 256, 1024, 64)
  CHECK(sides_of(buckets) == sides{{256, 1024},
                                   {256, 960},
                                   {256, 896},
                                   {256, 832},
                                   {320, 768},
                                   {320, 704},
                                   {384, 640},
                                   {448, 576},
                                   {512, 512},
                                   {576, 448},
                                   {640, 384},
                                   {704, 320},
                                   {768, 320},
                                   {832, 256},
                                   {896, 256},
                                   {960, 256},
                                   {1024, 256}});
  CHECK(ps::aspect_buckets(1024 * 1024).size() == 33);
  // BucketManager.select_bucket
  const auto chosen = [&](std::uint32_t width, std::uint32_t height) {
    return buckets.size_for({width, height});
  };
  CHECK(chosen(640, 480) == ps::image_size{576, 448});
  CHECK(chosen(480, 640) == ps::image_size{448, 576});
  CHECK(chosen(1920, 1080) == ps::image_size{640, 384});
  CHECK(chosen(100, 1000) == ps::image_size{256, 1024});
  CHECK(chosen(1000, 100) == ps::image_size{1024, 256});
  CHECK(chosen(301, 299) == ps::image_size{512, 512});
  for (std::uint64_t i = 0; i < 500; ++i) {
    const ps::image_size size = size_of(i);
    const auto ratio = [](const ps::image_size& s) { return static_cast<double>(s.width) / s.height; };
    const double got = std::abs(ratio(buckets.size_for(size)) - ratio(size));
    for (const ps::image_size& other : buckets.sizes())
      CHECK(got <= std::abs(ratio(other) - ratio(size)) + 1e-12);
    CHECK(buckets.bucket_of(ps::packed_size(size)) == buckets.bucket_of(size));
  }
  CHECK(buckets.length(8) == 512 * 512);
  CHECK(buckets.describe() == "17 sizes from 256 x 1024 to 1024 x 256");
}

TEST_CASE("image/aspect_buckets: of one shape the largest size counts") {
  CHECK(sides_of(ps::aspect_buckets(std::vector<ps::image_size>{{64, 32}, {30, 30}, {60, 60}, {10, 40}})) ==
        sides{{10, 40}, {60, 60}, {64, 32}});
  CHECK(sides_of(ps::aspect_buckets(100 * 100, {.step = 50, .min_side = 100, .max_side = 200})) ==
        sides{{100, 100}});
}

TEST_CASE("image/aspect_buckets: wrong sizes are one error") {
  CHECK_THAT(error_of([] { (void)ps::aspect_buckets(63 * 63); }), contains("1 to 255 sizes, not 0"));
  CHECK_THAT(error_of([] { (void)ps::aspect_buckets(std::vector<ps::image_size>{}); }), contains("not 0"));
  CHECK_THAT(error_of([] {
               (void)ps::aspect_buckets(std::vector<ps::image_size>{{3, 0}});
             }),
             contains("aspect_buckets"));
  CHECK_THAT(error_of([] { (void)ps::aspect_buckets(512 * 512, {.step = 0}); }), contains("aspect_buckets"));
  CHECK_THAT(error_of([] { (void)ps::aspect_buckets(4096 * 4096, {.step = 8}); }), contains("sizes, not"));
  CHECK_THAT(error_of([] {
               (void)ps::aspect_buckets(512 * 512).bucket_of(ps::image_size{0, 5});
             }),
             contains("no pixels"));
}

TEST_CASE("image/aspect_buckets: resize covers the size and crops the middle") {
  const ps::aspect_buckets buckets(std::vector<ps::image_size>{{16, 32}, {24, 24}, {32, 16}});
  image_call call;
  for (const ps::image_size size : {ps::image_size{40, 30}, {30, 40}, {100, 20}, {9, 90}, {24, 24}, {5, 5}}) {
    const test_image<std::uint8_t, 3> image(size, 7);
    const ps::image_size to = buckets.size_for(size);
    const double scale =
        std::max(static_cast<double>(to.width) / size.width, static_cast<double>(to.height) / size.height);
    const auto round = [&](std::uint32_t side) {
      return static_cast<std::uint32_t>(std::floor(side * scale + 0.5));
    };
    for (const ps::interpolation how : {ps::interpolation::bilinear, ps::interpolation::bicubic}) {
      const auto cut = ps::resize(buckets, {.how = how})(image, call.at(0));
      REQUIRE(cut.size() == to);
      const auto by_hand = ps::center_crop(to.height, to.width)(
          ps::resize(round(size.height), round(size.width), {.how = how})(image, call.at(0)), call.at(1));
      CHECK(drawn_values(cut) == drawn_values(by_hand));
    }
    const auto nearest = ps::resize(buckets).for_mask(0)(image, call.at(0));
    CHECK(drawn_values(nearest) ==
          drawn_values(ps::resize(buckets, {.how = ps::interpolation::nearest})(image, call.at(1))));
    ps::image_geometry places(size), by_hand(size);
    ps::rng random(1, 0, 0);
    ps::resize(buckets).follow(places, random);
    ps::resize(round(size.height), round(size.width)).follow(by_hand, random);
    ps::center_crop(to.height, to.width).follow(by_hand, random);
    CHECK(places.size() == to);
    CHECK(places.apply({3, 4}).x == by_hand.apply({3, 4}).x);
    CHECK(places.apply({3, 4}).y == by_hand.apply({3, 4}).y);
  }
}

TEST_CASE("image/aspect_buckets: an image too long to cover its size is one error") {
  const ps::aspect_buckets buckets(std::vector<ps::image_size>{{1024, 1024}});
  image_call call;
  const test_image<std::uint8_t, 1> thin({1, 3'000'000}, 1);
  CHECK_THAT(error_of([&] { (void)ps::resize(buckets)(thin, call.at(0)); }),
             contains("an image of 1 x 3000000 would become 3072000000 pixels long"));
}

TEST_CASE("image/aspect_buckets: packed_size is the size of an image, of which no pixel is read") {
  CHECK(ps::packed_size(ps::image_size{640, 480}) == (std::uint64_t{640} << 32 | 480));
  image_call call;
  const test_image<std::uint8_t, 3> image({9, 7}, 1);
  CHECK(ps::packed_size(image, call.at(0)) == ps::packed_size(ps::image_size{9, 7}));
  CHECK(image.reads() == 0);
}

TEST_CASE("image/aspect_buckets: batches of images of one size stack") {
  const ps::aspect_buckets buckets(64 * 64, {.step = 16});
  const auto images =
      ps::generated(200, [](std::uint64_t i) { return test_image<std::uint8_t, 3>(size_of(i), i); });
  const auto packed = [](std::uint64_t i) { return ps::packed_size(size_of(i)); };
  std::uint64_t seen = 0;
  std::vector<std::vector<ps::extents>> shapes(2);
  for (std::uint64_t rank = 0; rank < 2; ++rank) {
    const auto plan = images | ps::shuffle(ps::seed(2)) | ps::shard(rank, 2) | ps::map(ps::resize(buckets)) |
                      ps::bucket_by(packed, buckets, {.max_samples = 4}) | ps::allow_empty;
    for (auto&& b : plan.epoch(0)) {
      const ps::extents shape = b.values().shape();
      CHECK(shape[0] <= 4);
      CHECK(ps::aspect_buckets(buckets).size_for(
                {static_cast<std::uint32_t>(shape[2]), static_cast<std::uint32_t>(shape[1])}) ==
            ps::image_size{static_cast<std::uint32_t>(shape[2]), static_cast<std::uint32_t>(shape[1])});
      seen += shape[0];
      shapes[rank].push_back(shape.drop_front());
    }
  }
  CHECK(seen == 200);
  CHECK(shapes[0] == shapes[1]);

  const auto sizes = [](std::uint64_t i) { return size_of(i); };
  const auto global =
      images | ps::map(ps::resize(buckets)) | ps::global_bucket_by(sizes, buckets, {.max_tokens = 20'000});
  for (auto&& b : global.epoch(0)) {
    const ps::extents shape = b.values().shape();
    CHECK(shape[0] * shape[1] * shape[2] <= 20'000);
  }
  CHECK_THAT(error_of([&] {
               for (auto&& b : (images | ps::map(ps::resize(buckets)) |
                                ps::bucket_by(
                                    [](std::uint64_t) {
                                      return ps::image_size{1, 1};
                                    },
                                    buckets, {.max_samples = 4}))
                                   .epoch(0))
                 (void)b;
             }),
             contains("shape"));
}

}  // namespace aspect_buckets_test
