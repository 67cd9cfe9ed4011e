// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/erase.hpp>

#include "support/catch.hpp"
#include "support/test_image.hpp"
#include "support/warp_oracles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace erase_test {

namespace ps = penstock;
using penstock_test::all_ways_agree;
using penstock_test::read_values;
using penstock_test::test_image;

namespace {

template <class T, std::size_t Channels>
std::vector<T> painted(const test_image<T, Channels>& image, const ps::image_part& box,
                       const std::vector<T>& pixel) {
  std::vector<T> all = image.values();
  const ps::image_size size = image.size();
  for (std::size_t y = 0; y < size.height; ++y)
    for (std::size_t x = 0; x < size.width; ++x)
      if (x >= box.x && y >= box.y && x - box.x < box.width && y - box.y < box.height)
        std::copy_n(pixel.begin(), Channels,
                    all.begin() + static_cast<std::ptrdiff_t>((y * size.width + x) * Channels));
  return all;
}

}  // namespace

TEST_CASE("image/erase: a rectangle is painted, the rest is as it was") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 5}, 0, 1, 0, scratch};
  const test_image<std::uint8_t, 3> rgb({31, 17}, 3, 2);
  for (const ps::image_part box :
       {ps::image_part{3, 4, 5, 6}, ps::image_part{0, 0, 31, 17}, ps::image_part{30, 16, 1, 1},
        ps::image_part{25, 10, 100, 100}, ps::image_part{31, 0, 4, 4}, ps::image_part{0, 0, 0, 0}}) {
    const auto zeros = ps::erase(box)(rgb, c);
    CHECK(read_values(zeros) == painted<std::uint8_t, 3>(rgb, box, {0, 0, 0}));
    CHECK(all_ways_agree(zeros));
    const auto colour = ps::erase(box, {9, 8, 7})(rgb, c);
    CHECK(read_values(colour) == painted<std::uint8_t, 3>(rgb, box, {9, 8, 7}));
    CHECK(all_ways_agree(colour));
  }
  const test_image<float, 1> gray({9, 8}, 4);
  const auto half = ps::erase({2, 2, 3, 3}, 0.5)(gray, c);
  CHECK(read_values(half) == painted<float, 1>(gray, {2, 2, 3, 3}, {0.5f}));
  CHECK(all_ways_agree(half));
  const test_image<std::uint16_t, 4> deep({1, 1}, 4);
  const auto one = ps::erase({0, 0, 1, 1}, ps::pixel_fill(65'535))(deep, c);
  CHECK(read_values(one) == std::vector<std::uint16_t>(4, 65535));
  CHECK(one.box() == ps::image_part{0, 0, 1, 1});
}

TEST_CASE("image/erase: where nothing is painted, pixels are not copied") {
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{0, 5}, 0, 1, 0, scratch};
  const test_image<std::uint8_t, 3> image({31, 17}, 3);
  const auto erased = ps::erase({0, 0, 4, 4})(image, c);
  CHECK(erased.read({4, 0, 20, 17}).data() == image.read({4, 0, 20, 17}).data());
  CHECK(scratch.pixels.capacity() == 0);
  const test_image<std::uint8_t, 3> nothing({0, 0}, 3);
  CHECK(ps::erase({0, 0, 4, 4})(nothing, c).read({}).height() == 0);
}

TEST_CASE("image/erase: random pixels belong to the sample") {
  ps::image_scratch scratch, other;
  const auto noise = ps::erase({5, 5, 40, 30}, ps::random_pixels);
  const test_image<std::uint8_t, 3> image({64, 48}, 3);
  const auto first = noise(image, {{0, 5}, 0, 1, 0, scratch});
  CHECK(all_ways_agree(first));
  CHECK(read_values(first) == read_values(noise(image, {{0, 5}, 0, 1, 0, other})));
  CHECK(read_values(first) != read_values(noise(image, {{0, 6}, 0, 1, 0, other})));
  const auto box = read_values(first, {5, 5, 40, 30});
  const double mean = std::accumulate(box.begin(), box.end(), 0.0) / static_cast<double>(box.size());
  CHECK(std::abs(mean - 127.5) < 6);  // 3600 values: 5 standard deviations

  const test_image<float, 3> floats({64, 48}, 3);
  const auto normal = noise(floats, {{0, 5}, 0, 1, 0, scratch});
  CHECK(all_ways_agree(normal));
  double sum = 0, squares = 0;
  const auto values = read_values(normal, {5, 5, 40, 30});
  for (const float v : values) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const auto n = static_cast<double>(values.size());
  CHECK(std::abs(sum / n) < 0.085);
  CHECK(std::abs(squares / n - 1) < 0.12);
}

TEST_CASE("image/erase: a pixel for another number of channels is refused") {
  ps::image_scratch scratch;
  const test_image<std::uint8_t, 1> gray({4, 4}, 3);
  CHECK_THROWS_AS(ps::erase({0, 0, 1, 1}, {1, 2, 3})(gray, {{0, 5}, 0, 1, 0, scratch}), ps::error);
  CHECK_THROWS_AS(ps::erase({0, 0, 1, 1}, 256)(gray, {{0, 5}, 0, 1, 0, scratch}), ps::error);
}

TEST_CASE("image/erase: as torchvision erases") {
  ps::image_scratch scratch;
  std::size_t compared = 0;
  for (const auto& one : penstock_test::warp_cases()) {
    if (one.kind != "erase") continue;
    const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(one.numbers[i]); };
    const auto erasing = ps::erase({number(0), number(1), number(2), number(3)}, one.fill);
    const ps::call<ps::image_scratch> c{{0, 5}, 0, 1, 0, scratch};
    if (one.channels == 3)
      CHECK(read_values(erasing(one.image<3>(), c)) == one.expected());
    else
      CHECK(read_values(erasing(one.image<1>(), c)) == one.expected());
    ++compared;
  }
  CHECK(compared == 3);
}

}  // namespace erase_test
