// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/values.hpp>

#include "support/catch.hpp"
#include "support/color_oracles.hpp"
#include "support/count_allocations.hpp"
#include "support/test_image.hpp"

#include <penstock/stage/functions.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace image_values_test {

namespace ps = penstock;
using penstock_test::test_image;

namespace {

struct scratches {
  ps::image_scratch all[4];
  ps::call<ps::image_scratch> operator[](std::size_t i) { return {{}, 0, 0, 0, all[i]}; }
};

bool close(float a, double b) { return std::fabs(a - b) <= 2e-6 * (1 + std::fabs(b)); }

template <class I>
bool ways_agree(const I& image) {
  return penstock_test::all_ways_agree(image);
}

/// Whether an image of real numbers has these values.
template <class I, class F>
bool has_values(const I& image, F&& expected) {
  const auto values = penstock_test::read_values(image);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!close(values[i], expected(i))) return false;
  return values.size() == std::size_t{image.size().width} * image.size().height * I::channels;
}

}  // namespace

TEST_CASE("image/values: to_float scales whole numbers to 1") {
  scratches s;
  const test_image<std::uint8_t, 1> all({256, 1}, [](std::size_t x, std::size_t, std::size_t) { return x; });
  const auto floats = ps::to_float()(all, s[0]);
  const auto values = penstock_test::read_values(floats);
  int wrong = 0;
  for (int i = 0; i < 256; ++i) {
    const float exact = static_cast<float>(i) / 255.0f;
    const float value = values[static_cast<std::size_t>(i)];
    wrong += value != exact && value != std::nextafter(exact, 2.0f) && value != std::nextafter(exact, -1.0f);
  }
  CHECK(wrong == 0);
  CHECK(values.front() == 0.0f);
  CHECK(values.back() == 1.0f);

  const test_image<std::uint16_t, 1> wide(
      {256, 256}, [](std::size_t x, std::size_t y, std::size_t) { return y * 256 + x; });
  const auto wide_floats = ps::to_float()(wide, s[1]);
  CHECK(has_values(wide_floats, [](std::size_t i) { return static_cast<double>(i) / 65535; }));
  CHECK(penstock_test::read_values(wide_floats).back() == 1.0f);
  CHECK(ways_agree(wide_floats));

  const test_image<float, 3> real({9, 4}, 3);
  CHECK(penstock_test::read_values(ps::to_float()(real, s[2])) == real.values());
}

TEMPLATE_TEST_CASE_SIG(
    "image/values: normalize, alone and after to_float, of any channels and into any layout", "",
    ((std::size_t C), C), 1, 3, 4) {
  for (const ps::image_size size :
       {ps::image_size{1, 1}, {1, 40}, {40, 1}, {37, 23}, {256, 3}, {700, 2}, {0, 0}}) {
    for (const std::size_t gap : {0u, 5u}) {
      INFO(size.width << "x" << size.height << ", gap " << gap);
      scratches s;
      const test_image<std::uint8_t, C> image(size, 7, gap);
      const auto raw = image.values();
      const ps::channel_statistics<C> statistics = [] {
        ps::channel_statistics<C> some;
        for (std::size_t c = 0; c < C; ++c) {
          some.mean[c] = 0.3 + 0.1 * static_cast<double>(c);
          some.std[c] = 0.2 + 0.03 * static_cast<double>(c);
        }
        return some;
      }();
      const auto expected = [&](std::size_t i) {
        return (raw[i] / 255.0 - statistics.mean[i % C]) / statistics.std[i % C];
      };
      const auto alone = ps::normalize(statistics)(image, s[0]);
      const auto scaled = ps::to_float()(image, s[1]);
      const auto both = ps::normalize(statistics)(scaled, s[2]);
      static_assert(std::is_same_v<decltype(alone), decltype(both)>);
      CHECK(has_values(alone, expected));
      CHECK(penstock_test::read_values(both) == penstock_test::read_values(alone));
      CHECK(ways_agree(alone));
      const auto one = ps::normalize(0.5, 0.25)(image, s[3]);
      CHECK(has_values(one, [&](std::size_t i) { return (raw[i] / 255.0 - 0.5) / 0.25; }));
      CHECK(ways_agree(one));

      image.forget_reads();
      (void)penstock_test::drawn_values(both, penstock_test::layout::chw);
      CHECK(image.reads() == 1);
      CHECK_FALSE(image.read_outside());
    }
  }
}

TEST_CASE("image/values: normalize twice, and of images of 16 bits and of float") {
  scratches s;
  const test_image<std::uint16_t, 3> wide({31, 9}, 2);
  const auto raw = wide.values();
  const auto once = ps::normalize(ps::imagenet)(wide, s[0]);
  const auto expected = [&](std::size_t i) {
    return (raw[i] / 65535.0 - ps::imagenet.mean[i % 3]) / ps::imagenet.std[i % 3];
  };
  CHECK(has_values(once, expected));
  CHECK(ways_agree(once));
  const auto twice = ps::normalize({1.0, 2.0, 3.0}, {0.5, 2.0, 4.0})(once, s[1]);
  const double mean[] = {1, 2, 3}, deviation[] = {0.5, 2, 4};
  CHECK(has_values(twice, [&](std::size_t i) { return (expected(i) - mean[i % 3]) / deviation[i % 3]; }));

  const test_image<float, 3> real({31, 9}, 2);
  const auto values = real.values();
  const auto normal = ps::normalize({0.1, 0.2, 0.3}, {0.5, 0.6, 0.7})(real, s[2]);
  CHECK(has_values(normal, [&](std::size_t i) {
    const double c = static_cast<double>(i % 3);
    return (static_cast<double>(values[i]) - 0.1 * (c + 1)) / (0.5 + 0.1 * c);
  }));
  CHECK(ways_agree(normal));
}

TEMPLATE_TEST_CASE("image/values: numbers of 16 bits are the rounded floats", "", ps::half, ps::bfloat16) {
  scratches s;
  for (const ps::image_size size : {ps::image_size{1, 1}, {33, 7}, {257, 3}, {600, 2}}) {
    const test_image<std::uint8_t, 3> image(size, 4, 2);
    const auto floats = ps::normalize(ps::imagenet)(image, s[0]);
    const auto expected = penstock_test::read_values(floats);
    const auto check = [&](const auto& small) {
      const auto values = penstock_test::read_values(small);
      int wrong = 0;
      for (std::size_t i = 0; i < values.size(); ++i)
        wrong += values[i].bits() != TestType(expected[i]).bits();
      CHECK(values.size() == expected.size());
      CHECK(wrong == 0);
      CHECK(ways_agree(small));
    };
    if constexpr (std::is_same_v<TestType, ps::half>) {
      check(ps::to_half()(floats, s[1]));
      CHECK(penstock_test::read_values(ps::to_half()(image, s[2]))[0] ==
            ps::half(static_cast<float>(image.at(0, 0, 0)) * static_cast<float>(1 / 255.0)));
    } else {
      check(ps::to_bfloat16()(floats, s[1]));
    }
  }
}

TEST_CASE("image/values: into planes through to_chw") {
  scratches s;
  const test_image<std::uint8_t, 3> image({19, 6}, 8);
  const auto floats = ps::normalize(ps::imagenet)(image, s[0]);
  const auto array = ps::to_chw()(floats, s[1]);
  const auto values = array.finish();
  int wrong = 0;
  const auto rows = penstock_test::read_values(floats);
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t i = 0; i < 19 * 6; ++i) wrong += values.flat()[c * 19 * 6 + i] != rows[i * 3 + c];
  CHECK(wrong == 0);
}

TEST_CASE("image/values: normalize against torchvision") {
  int cases = 0, wrong = 0;
  for (const auto& one : penstock_test::color_oracles()) {
    if (one.operation != "normalize") continue;
    ++cases;
    const auto image = one.image<3>();
    scratches s;
    const auto values = penstock_test::read_values(ps::normalize(ps::imagenet)(image, s[0]));
    const auto bytes = one.bytes();
    REQUIRE(bytes.size() == values.size() * 4);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits = 0;
      for (std::size_t k = 0; k < 4; ++k) bits |= std::uint32_t{bytes[4 * i + k]} << (8 * k);
      const float expected = std::bit_cast<float>(bits);
      // 2 units in the last place of the largest value
      wrong += std::fabs(values[i] - expected) > 0x1p-21f;
    }
  }
  CHECK(cases >= 1);
  CHECK(wrong == 0);
}

TEST_CASE("image/values: bad means and deviations") {
  using Catch::Matchers::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf, 1e10}) {
    CHECK_THROWS_WITH(ps::normalize(bad, 1.0), Contains("mean of channel 0 is not a number within 1e9"));
    CHECK_THROWS_AS(ps::normalize({0.0, 0.0, bad}, {1.0, 1.0, 1.0}), ps::error);
  }
  for (const double bad : {nan, inf, -inf, 0.0, -1.0, 1e-10})
    CHECK_THROWS_WITH(ps::normalize({0.0, 0.0, 0.0}, {1.0, bad, 1.0}),
                      Contains("deviation of channel 1 is not a positive number"));
}

TEST_CASE("image/values: what arrives and what is wrong with it") {
  using bytes = test_image<std::uint8_t, 3>;
  using rgba = test_image<std::uint8_t, 4>;
  using halves = ps::converted_image<bytes, ps::half>;
  using planes = ps::chw_array<bytes>;
  using floats = ps::convert_operation<float>;
  using normal = ps::normalize_operation<3>;
  CHECK(std::is_same_v<ps::detail::function_check<floats, bytes>::wrong, ps::mistakes::none>);
  CHECK(std::is_same_v<ps::detail::function_check<floats, int>::wrong, ps::mistakes::operation_wants_image>);
  CHECK(std::is_same_v<ps::detail::function_check<floats, planes>::wrong,
                       ps::mistakes::operation_after_to_chw>);
  CHECK(std::is_same_v<ps::detail::function_check<floats, halves>::wrong,
                       ps::mistakes::operation_wants_values>);
  CHECK(std::is_same_v<ps::detail::function_check<normal, bytes>::wrong, ps::mistakes::none>);
  CHECK(std::is_same_v<ps::detail::function_check<normal, rgba>::wrong,
                       ps::mistakes::normalize_of_other_channels>);
  CHECK(std::is_same_v<ps::detail::function_check<normal, planes>::wrong,
                       ps::mistakes::operation_after_to_chw>);
  CHECK(std::is_same_v<ps::detail::function_check<normal, halves>::wrong,
                       ps::mistakes::operation_wants_values>);
}

TEST_CASE("image/values: no allocation once the scratch has grown") {
  scratches s;
  const test_image<std::uint8_t, 3> image({40, 30}, 1);
  const auto once = [&] {
    (void)ps::to_chw()(ps::to_half()(ps::normalize(ps::imagenet)(image, s[0]), s[1]), s[2]).finish();
    (void)ps::to_float()(image, s[3]).finish();
  };
  once();
  CHECK(penstock_test::allocations_of(once) == 0);
}

}  // namespace image_values_test
