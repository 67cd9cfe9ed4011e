// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/blur.hpp>

#include "support/catch.hpp"
#include "support/color_oracles.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/error.hpp>
#include <penstock/stage/functions.hpp>

#include <cmath>
#include <limits>

namespace blur_test {

namespace ps = penstock;
using penstock_test::against_torchvision;
using penstock_test::read_values;
using penstock_test::test_image;

namespace {

/// Blurs with real numbers, as the definition says.
template <std::size_t Channels>
std::vector<double> naive_blur(const test_image<std::uint8_t, Channels>& image, int kernel, double sigma) {
  const int w = static_cast<int>(image.size().width), h = static_cast<int>(image.size().height);
  const auto fold = [](int at, int length) {
    while (length > 1 && (at < 0 || at >= length)) at = at < 0 ? -at : 2 * (length - 1) - at;
    return static_cast<std::size_t>(length > 1 ? at : 0);
  };
  std::vector<double> weights;
  double all = 0;
  for (int i = -(kernel / 2); i <= kernel / 2; ++i) {
    weights.push_back(std::exp(-0.5 * i * i / (sigma * sigma)));
    all += weights.back();
  }
  std::vector<double> result;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x)
      for (std::size_t c = 0; c < Channels; ++c) {
        double sum = 0;
        for (int j = 0; j < kernel; ++j)
          for (int i = 0; i < kernel; ++i)
            sum += weights[static_cast<std::size_t>(i)] * weights[static_cast<std::size_t>(j)] *
                   image.at(fold(x + i - kernel / 2, w), fold(y + j - kernel / 2, h), c);
        result.push_back(c == 3 ? image.at(static_cast<std::size_t>(x), static_cast<std::size_t>(y), 3)
                                : sum / all / all);
      }
  return result;
}

template <std::size_t Channels>
void check_blur(ps::image_size size, int kernel, double sigma) {
  INFO(size.width << "x" << size.height << "x" << Channels << ", " << kernel << ", " << sigma);
  const test_image<std::uint8_t, Channels> image(size, 3, 2);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const auto blurred = ps::gaussian_blur(kernel, sigma, sigma)(image, c);
  const auto values = read_values(blurred);
  const auto expected = naive_blur(image, kernel, sigma);
  REQUIRE(values.size() == expected.size());
  double maximum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    maximum = std::max(maximum, std::fabs(values[i] - expected[i]));
  CHECK(maximum < 0.75);
  CHECK(penstock_test::all_ways_agree(blurred));
  CHECK_FALSE(image.read_outside());
}

}  // namespace

TEST_CASE("image/blur: gaussian_blur within 1 of torchvision") {
  const auto result = against_torchvision(
      "gaussian_blur", 1, [](double a, double b) { return ps::gaussian_blur(static_cast<int>(a), b, b); });
  INFO("first: " << result.first);
  CHECK(result.cases >= 30);
  CHECK(result.wrong == 0);
}

TEST_CASE("image/blur: gaussian_blur as its definition, for all sizes") {
  for (const ps::image_size size :
       {ps::image_size{1, 1}, {1, 9}, {9, 1}, {2, 3}, {40, 13}, {64, 3}, {11, 40}})
    for (const int kernel : {1, 3, 5, 13, 23}) {
      check_blur<1>(size, kernel, 0.3 + 0.2 * kernel);
      check_blur<3>(size, kernel, 1.1);
      check_blur<4>(size, kernel, 100.0);
    }
  check_blur<3>({5, 4}, 255, 3.0);
  check_blur<1>({150, 2}, 151, 30.0);
}

TEST_CASE("image/blur: gaussian_blur reads the kernel's margin, and draws the deviation") {
  const test_image<std::uint8_t, 3> image({40, 30}, 5);
  ps::image_scratch scratch, other;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const auto blurred = ps::gaussian_blur(5)(image, c);
  image.forget_reads();
  (void)blurred.read({10, 1, 7, 8});
  CHECK(image.reads() == 1);
  CHECK(image.last_part() == ps::image_part{8, 0, 11, 11});
  (void)blurred.read({36, 25, 4, 5});
  CHECK(image.last_part() == ps::image_part{34, 23, 6, 7});
  const auto again = ps::gaussian_blur(5)(image, ps::call<ps::image_scratch>{{}, 0, 0, 0, other});
  CHECK(read_values(again) == read_values(blurred));
  const auto next = ps::gaussian_blur(5)(image, ps::call<ps::image_scratch>{{0, 1}, 0, 0, 0, other});
  CHECK(read_values(next) != read_values(blurred));
  const test_image<std::uint8_t, 3> empty({0, 0}, 5);
  CHECK(read_values(ps::gaussian_blur(5)(empty, c)).empty());
  CHECK(read_values(ps::sharpness(3)(empty, c)).empty());
}

TEST_CASE("image/blur: sharpness has the bytes of torchvision") {
  const auto result = against_torchvision("sharpness", 0, [](double a, double) { return ps::sharpness(a); });
  INFO("first: " << result.first);
  CHECK(result.cases >= 40);
  CHECK(result.wrong == 0);
  const test_image<std::uint8_t, 3> image({40, 30}, 5);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const auto changed = ps::sharpness(2)(image, c);
  image.forget_reads();
  (void)changed.read({10, 0, 7, 8});
  CHECK(image.reads() == 1);
  CHECK(image.last_part() == ps::image_part{9, 0, 9, 9});
}

TEST_CASE("image/blur: random_sharpness") {
  const test_image<std::uint8_t, 3> image({5, 4}, 5);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const auto sharp = read_values(ps::sharpness(2)(image, c));
  REQUIRE(sharp != image.values());
  int count = 0, wrong = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const ps::call<ps::image_scratch> one{{0, i}, 0, 7, 3, scratch};
    const auto values = read_values(ps::random_sharpness(2)(image, one));
    count += values == sharp;
    wrong += values != sharp && values != image.values();
    wrong += read_values(ps::random_sharpness(2, 0)(image, one)) != image.values();
    wrong += read_values(ps::random_sharpness(2, 1)(image, one)) != sharp;
  }
  CHECK(wrong == 0);
  CHECK(count > 150);
  CHECK(count < 250);
}

TEST_CASE("image/blur: bad arguments") {
  using Catch::Matchers::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const int bad : {-1, 0, 2, 4, 1025})
    CHECK_THROWS_WITH(ps::gaussian_blur(bad), Contains("pass an odd number from 1 to 1023"));
  for (const double bad : {nan, inf, -1.0, 0.0}) {
    CHECK_THROWS_WITH(ps::gaussian_blur(3, bad, 1.0), Contains("the lowest deviation is "));
    CHECK_THROWS_WITH(ps::gaussian_blur(3, 0.5, bad), Contains("the highest deviation is "));
  }
  CHECK_THROWS_AS(ps::gaussian_blur(3, 2.0, 1.0), ps::error);
  for (const double bad : {nan, inf, -1.0}) {
    CHECK_THROWS_WITH(ps::sharpness(bad), Contains("sharpness: the factor is "));
    CHECK_THROWS_AS(ps::random_sharpness(bad), ps::error);
    CHECK_THROWS_AS(ps::random_sharpness(1, bad), ps::error);
  }
  CHECK_THROWS_AS(ps::random_sharpness(1, 1.5), ps::error);
}

TEST_CASE("image/blur: no allocation once the scratch has grown") {
  ps::image_scratch first, second;
  const test_image<std::uint8_t, 3> image({40, 30}, 1);
  const auto once = [&] {
    const auto blurred = ps::gaussian_blur(7)(image, ps::call<ps::image_scratch>{{}, 0, 0, 0, first});
    (void)ps::sharpness(2)(blurred, ps::call<ps::image_scratch>{{}, 0, 0, 0, second}).finish();
  };
  once();
  CHECK(penstock_test::allocations_of(once) == 0);
}

}  // namespace blur_test
