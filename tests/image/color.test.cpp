// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/color.hpp>

#include "support/catch.hpp"
#include "support/color_oracles.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/error.hpp>
#include <penstock/stage/functions.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <type_traits>

namespace color_test {

namespace ps = penstock;
using penstock_test::against_torchvision;
using penstock_test::read_values;
using penstock_test::test_image;

namespace {

template <class Make>
void check(std::string_view operation, int cases, Make make) {
  const auto result = against_torchvision(operation, 0, make);
  INFO(operation << ", first: " << result.first);
  CHECK(result.cases >= cases);
  CHECK(result.wrong == 0);
}

struct scratches {
  ps::image_scratch all[6];
  ps::call<ps::image_scratch> operator[](std::size_t i) { return {{}, 0, 0, 0, all[i]}; }
};

}  // namespace

TEST_CASE("image/color: the bytes of torchvision") {
  check("saturation", 60, [](double a, double) { return ps::saturation(a); });
  check("hue", 60, [](double a, double) { return ps::hue(a); });
}

TEST_CASE("image/color: grayscale has the bytes of torchvision") {
  int one = 0, three = 0, wrong = 0;
  for (const auto& oracle : penstock_test::color_oracles()) {
    if (oracle.operation != "grayscale") continue;
    const auto expected = oracle.bytes();
    const auto compare = [&](const auto& image, const auto& gray) {
      wrong += read_values(gray) != expected || !penstock_test::all_ways_agree(gray) ||
               gray.size() != image.size();
    };
    scratches s;
    const bool first = oracle.a == 1;
    ++(first ? one : three);
    if (oracle.channels == 1) {
      const auto image = oracle.image<1>();
      if (first)
        compare(image, ps::grayscale()(image, s[0]));
      else
        compare(image, ps::grayscale<3>()(image, s[0]));
      wrong += read_values(ps::random_grayscale(1)(image, s[1])) != image.values();
      continue;
    }
    const auto image = oracle.image<3>();
    const auto with_alpha = oracle.image<4>();
    if (first) {
      compare(image, ps::grayscale()(image, s[0]));
      compare(with_alpha, ps::grayscale<1>()(with_alpha, s[1]));
      continue;
    }
    compare(image, ps::grayscale<3>()(image, s[0]));
    compare(image, ps::random_grayscale(1)(image, s[1]));
    const auto kept = ps::grayscale<3>()(with_alpha, s[2]);
    static_assert(std::remove_cvref_t<decltype(kept)>::channels == 4);
    const auto values = read_values(kept);
    wrong += values != read_values(ps::random_grayscale(1)(with_alpha, s[3]));
    wrong += read_values(ps::random_grayscale(0)(with_alpha, s[4])) != with_alpha.values();
    for (std::size_t i = 0; i < values.size(); ++i)
      wrong += values[i] != (i % 4 == 3 ? with_alpha.at(i / 4 % oracle.width, i / 4 / oracle.width, 3)
                                        : expected[i / 4 * 3]);
  }
  CHECK(one >= 6);
  CHECK(three >= 6);
  CHECK(wrong == 0);
}

TEST_CASE("image/color: gray images have no colours to change") {
  scratches s;
  const test_image<std::uint8_t, 1> image({5, 4}, 5);
  CHECK(read_values(ps::saturation(0.1)(image, s[0])) == image.values());
  CHECK(read_values(ps::hue(0.1)(image, s[0])) == image.values());
  CHECK(read_values(ps::color_jitter(0, 0, 0.9, 0.5)(image, s[0])) == image.values());
}

TEST_CASE("image/color: color_jitter is its operations in their order") {
  const test_image<std::uint8_t, 3> image({23, 14}, 5, 4);
  const test_image<std::uint8_t, 4> with_alpha({9, 6}, 6);
  const test_image<std::uint8_t, 1> gray({9, 6}, 6);
  std::set<int> orders;
  int wrong = 0, outside = 0;
  const auto one_by_one = [&](const auto& from, const ps::detail::color_steps& steps) {
    constexpr std::size_t channels = std::remove_cvref_t<decltype(from)>::channels;
    std::vector<std::uint8_t> values = from.values();
    for (std::size_t i = 0; i < steps.count; ++i) {
      const test_image<std::uint8_t, channels> at(from.size(), values);
      scratches s;
      const double factor = steps.all[i].factor;
      switch (steps.all[i].kind) {
        case ps::detail::color_step::brightness:
          values = read_values(ps::brightness(factor)(at, s[0]));
          break;
        case ps::detail::color_step::contrast:
          values = read_values(ps::contrast(factor)(at, s[0]));
          break;
        case ps::detail::color_step::saturation:
          values = read_values(ps::saturation(factor)(at, s[0]));
          break;
        case ps::detail::color_step::hue:
          values = read_values(ps::hue(factor)(at, s[0]));
          break;
      }
    }
    return values;
  };
  const auto jitter = ps::color_jitter(0.4, 0.5, 1.6, 0.1);
  for (std::uint64_t i = 0; i < 300; ++i) {
    ps::image_scratch scratch;
    const ps::call<ps::image_scratch> c{{0, i}, 0, 7, 3, scratch};
    const auto steps = jitter.draw_steps(c.random(), true);
    wrong += steps.count != 4;
    int order = 0;
    for (const auto& step : steps.all) {
      order = order * 4 + static_cast<int>(step.kind);
      const double low[] = {0.6, 0.5, 0.0, -0.1}, high[] = {1.4, 1.5, 2.6, 0.1};
      const auto kind = static_cast<std::size_t>(step.kind);
      outside += step.factor < low[kind] || step.factor > high[kind];
    }
    orders.insert(order);
    if (i >= 30) continue;
    const auto changed = jitter(image, c);
    wrong += read_values(changed) != one_by_one(image, steps);
    wrong += !penstock_test::all_ways_agree(changed);
    wrong += read_values(jitter(with_alpha, c)) != one_by_one(with_alpha, steps);
    const auto gray_steps = jitter.draw_steps(c.random(), false);
    wrong += gray_steps.count != 2 || read_values(jitter(gray, c)) != one_by_one(gray, gray_steps);
    // one at a time; without contrast only the part is read
    const auto bright = ps::color_jitter(0.4)(image, c);
    image.forget_reads();
    (void)bright.read({1, 2, 3, 4});
    wrong += image.last_part() != ps::image_part{1, 2, 3, 4};
    wrong += !penstock_test::all_ways_agree(bright);
    wrong += read_values(ps::color_jitter(0)(image, c)) != image.values();
  }
  CHECK(wrong == 0);
  CHECK(outside == 0);
  CHECK(orders.size() == 24);
}

TEST_CASE("image/color: random_grayscale draws") {
  const test_image<std::uint8_t, 3> image({3, 2}, 5);
  ps::image_scratch scratch;
  int grays = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const ps::call<ps::image_scratch> c{{0, i}, 0, 7, 3, scratch};
    grays += read_values(ps::random_grayscale()(image, c)) != image.values();
  }
  CHECK(grays > 60);
  CHECK(grays < 140);
  CHECK(ps::detail::function_uses_random<ps::random_grayscale_operation, test_image<std::uint8_t, 3>>);
  CHECK(ps::detail::function_uses_random<ps::color_jitter_operation, test_image<std::uint8_t, 3>>);
  CHECK_FALSE(ps::detail::function_uses_random<ps::hue_operation, test_image<std::uint8_t, 3>>);
}

TEST_CASE("image/color: bad arguments") {
  using Catch::Matchers::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf, -0.6}) {
    CHECK_THROWS_WITH(ps::random_grayscale(bad), Contains("random_grayscale: the probability is "));
    CHECK_THROWS_WITH(ps::saturation(bad), Contains("saturation: the factor is "));
    CHECK_THROWS_WITH(ps::hue(bad), Contains("pass a number from -0.5 to 0.5"));
    CHECK_THROWS_WITH(ps::saturation_operation(bad), Contains("saturation: the factor is "));
    CHECK_THROWS_WITH(ps::hue_operation(bad), Contains("pass a number from -0.5 to 0.5"));
    CHECK_THROWS_WITH(ps::color_jitter(bad), Contains("color_jitter: brightness is "));
    CHECK_THROWS_WITH(ps::color_jitter(0, bad), Contains("contrast is "));
    CHECK_THROWS_WITH(ps::color_jitter(0, 0, bad), Contains("saturation is "));
    CHECK_THROWS_WITH(ps::color_jitter(0, 0, 0, bad), Contains("hue is "));
  }
  CHECK_THROWS_AS(ps::color_jitter(0, 0, 0, 0.6), ps::error);
}

TEST_CASE("image/color: no allocation once the scratch has grown") {
  scratches s;
  const test_image<std::uint8_t, 3> image({40, 30}, 1);
  const auto jitter = ps::color_jitter(0.4, 0.4, 0.4, 0.1);
  const auto once = [&] {
    (void)jitter(ps::grayscale<3>()(ps::hue(0.1)(ps::saturation(0.4)(image, s[0]), s[1]), s[2]), s[3])
        .finish();
  };
  once();
  CHECK(penstock_test::allocations_of(once) == 0);
}

}  // namespace color_test
