// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/flip.hpp>

#include <penstock/image/crop.hpp>
#include <penstock/image/resize.hpp>
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
#include <limits>
#include <vector>

namespace image_flip_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

template <class T, std::size_t Channels>
void check_sizes() {
  image_call call;
  for (const ps::image_size size : {ps::image_size{1, 1}, ps::image_size{2, 1}, ps::image_size{1, 3},
                                    ps::image_size{3, 2}, ps::image_size{17, 5}, ps::image_size{64, 3}}) {
    const test_image<T, Channels> image(size, 3, 2);
    std::vector<T> across, down;
    for (std::size_t y = 0; y < size.height; ++y)
      for (std::size_t x = 0; x < size.width; ++x)
        for (std::size_t c = 0; c < Channels; ++c) {
          across.push_back(image.at(size.width - 1 - x, y, c));
          down.push_back(image.at(x, size.height - 1 - y, c));
        }
    const auto left_right = ps::horizontal_flip(1)(image, call.at(0));
    CHECK(read_values(left_right) == across);
    CHECK(all_ways_agree(left_right));
    const auto top_bottom = ps::vertical_flip(1)(image, call.at(0));
    CHECK(read_values(top_bottom) == down);
    CHECK(all_ways_agree(top_bottom));
    const auto not_at_all = ps::horizontal_flip(0)(image, call.at(0));
    CHECK(not_at_all.read(ps::whole_of(size)).data() == image.read(ps::whole_of(size)).data());
    CHECK(all_ways_agree(not_at_all));
    CHECK_FALSE(image.read_outside());
  }
}

}  // namespace

TEST_CASE("image/flip: values of torchvision") {
  image_call call;
  check_resize_oracles("hflip", [&](const auto& image, const std::vector<std::string>&) {
    return ps::horizontal_flip(1)(image, call.at(0));
  });
  check_resize_oracles("vflip", [&](const auto& image, const std::vector<std::string>&) {
    return ps::vertical_flip(1)(image, call.at(0));
  });
}

TEST_CASE("image/flip: all sizes and kinds of pixels") {
  check_sizes<std::uint8_t, 1>();
  check_sizes<std::uint8_t, 3>();
  check_sizes<std::uint8_t, 4>();
  check_sizes<std::uint16_t, 3>();
  check_sizes<float, 1>();
  check_sizes<float, 3>();
}

TEST_CASE("image/flip: both at once, and only the mirrored part is read") {
  image_call first, second;
  const test_image<std::uint8_t, 3> image({20, 10}, 1);
  const auto turned = ps::vertical_flip(1)(ps::horizontal_flip(1)(image, first.at(0)), second.at(0));
  CHECK(all_ways_agree(turned));
  (void)turned.read({1, 2, 4, 5});
  CHECK(image.last_part() == ps::image_part{15, 3, 4, 5});
  CHECK(drawn_values(turned, {1, 2, 0, 0}).empty());
  CHECK(&turned.memory() == &second.scratch);
  CHECK(allocations_of([&] { (void)turned.read({0, 0, 4, 5}); }) == 0);
}

TEST_CASE("image/flip: of resized images equals a flip of their pixels") {
  image_call first, second;
  const test_image<std::uint8_t, 3> colours({31, 23}, 1, 5);
  const test_image<std::uint8_t, 1> gray({31, 23}, 2);
  const auto check = [&](const auto& image, const ps::resize_operation& resize) {
    const auto made = resize(image, first.at(0));
    const auto mirrored = ps::horizontal_flip(1)(made, second.at(0));
    const ps::image_size size = made.size();
    constexpr std::size_t channels = decltype(made)::channels;
    const auto pixels = read_values(made), result = read_values(mirrored);
    std::size_t wrong = 0;
    for (std::size_t y = 0; y < size.height; ++y)
      for (std::size_t x = 0; x < size.width; ++x)
        for (std::size_t c = 0; c < channels; ++c)
          wrong += result[(y * size.width + x) * channels + c] !=
                   pixels[(y * size.width + size.width - 1 - x) * channels + c];
    CHECK(wrong == 0);
    CHECK(all_ways_agree(mirrored));
  };
  for (const ps::interpolation how : {ps::interpolation::nearest, ps::interpolation::bilinear,
                                      ps::interpolation::bicubic, ps::interpolation::area})
    for (const bool antialias : {true, false})
      for (const ps::image_size& to : {ps::image_size{17, 9}, ps::image_size{50, 60}, ps::image_size{31, 40},
                                       ps::image_size{1, 1}, ps::image_size{31, 23}}) {
        INFO("to " << to.width << " x " << to.height << ", antialias " << antialias << ", interpolation "
                   << static_cast<int>(how));
        const ps::resize_operation resize(to.height, to.width, {.how = how, .antialias = antialias});
        check(colours, resize);
        check(gray, resize);
      }
  CHECK_FALSE(colours.read_outside());
  CHECK_FALSE(gray.read_outside());
}

TEST_CASE("image/flip: happens with its probability, and by a key to all fields") {
  using image = test_image<std::uint8_t, 1>;
  using sample = ps::record<ps::field<"jpg", image>, ps::field<"png", image>>;
  const image pair({2, 1}, [](std::size_t x, std::size_t, std::size_t) { return x; });
  const std::vector<sample> samples(400, sample(pair, pair));
  const auto plan = ps::from(samples) | ps::map<"jpg">(ps::horizontal_flip(0.25), ps::key("flip")) |
                    ps::map<"png">(ps::horizontal_flip(0.25), ps::key("flip")) | ps::batch(40) | ps::seed(5);
  std::vector<std::uint8_t> first;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    std::vector<std::uint8_t> images, masks;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0))
      for (std::size_t i = 0; i < 80; i += 2) {
        images.push_back(ps::get<"jpg">(b).flat()[i]);
        masks.push_back(ps::get<"png">(b).flat()[i]);
      }
    CHECK(images == masks);
    const auto mirrored = std::count(images.begin(), images.end(), 1);
    CHECK(mirrored > 70);
    CHECK(mirrored < 130);
    if (first.empty()) first = images;
    CHECK(images == first);
  }
  // two flips in one map draw for themselves; otherwise the second one would undo what the first one does
  const auto twice = ps::from(std::vector<image>(50, pair)) |
                     ps::map(ps::horizontal_flip(), ps::horizontal_flip()) | ps::batch(50);
  const auto values = values_of(twice);
  CHECK(values[0] + values[1] == 1);
  std::size_t mirrored = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) mirrored += values[i];
  CHECK(mirrored > 10);
  CHECK(mirrored < 40);
}

TEST_CASE("image/flip: a probability is from 0 to 1") {
  CHECK_THROWS_AS(ps::horizontal_flip(-0.1), ps::error);
  CHECK_THROWS_AS(ps::horizontal_flip(1.1), ps::error);
  CHECK_THROWS_AS(ps::vertical_flip(std::numeric_limits<double>::quiet_NaN()), ps::error);
  static_assert(ps::flip_operation::uses_random<int>);
  SUCCEED();
}

}  // namespace image_flip_test
