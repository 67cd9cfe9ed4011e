// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/image/lookup.hpp>

#include "support/catch.hpp"
#include "support/color_oracles.hpp"
#include "support/count_allocations.hpp"

#include <penstock/core/error.hpp>
#include <penstock/image/values.hpp>
#include <penstock/stage/functions.hpp>

#include <limits>
#include <type_traits>

namespace lookup_test {

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

}  // namespace

TEST_CASE("image/lookup: the bytes of torchvision") {
  check("invert", 10, [](double, double) { return ps::invert(); });
  check("solarize", 40, [](double a, double) { return ps::solarize(a); });
  check("posterize", 40, [](double a, double) { return ps::posterize(static_cast<int>(a)); });
  check("brightness", 60, [](double a, double) { return ps::brightness(a); });
  check("contrast", 60, [](double a, double) { return ps::contrast(a); });
  check("autocontrast", 10, [](double, double) { return ps::autocontrast(); });
  check("equalize", 10, [](double, double) { return ps::equalize(); });
}

TEST_CASE("image/lookup: each reads the image once, and all of it only where it must") {
  const test_image<std::uint8_t, 3> image({40, 30}, 5);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const ps::image_part part{3, 4, 10, 6};
  const auto reads = [&](const auto& operation, const ps::image_part& expected) {
    const auto changed = operation(image, c);
    image.forget_reads();
    (void)changed.read(part);
    CHECK(image.reads() == 1);
    CHECK(image.last_part() == expected);
    (void)penstock_test::drawn_values(changed, part);
    CHECK(image.reads() == 2);
    CHECK(image.last_part() == expected);
  };
  const ps::image_part whole{0, 0, 40, 30};
  reads(ps::invert(), part);
  reads(ps::solarize(9), part);
  reads(ps::posterize(3), part);
  reads(ps::brightness(0.3), part);
  reads(ps::contrast(0.3), whole);
  reads(ps::autocontrast(), whole);
  reads(ps::equalize(), whole);
}

TEST_CASE("image/lookup: at random") {
  const test_image<std::uint8_t, 3> image({5, 4}, 5);
  const auto share = [&](const auto& never, const auto& always, const auto& half, const auto& plain) {
    ps::image_scratch scratch, other;
    const ps::call<ps::image_scratch> c{{}, 0, 0, 0, other};
    const auto changed = read_values(plain(image, c));
    REQUIRE(changed != image.values());
    int count = 0, wrong = 0;
    for (std::uint64_t i = 0; i < 400; ++i) {
      const ps::call<ps::image_scratch> one{{0, i}, 0, 7, 3, scratch};
      wrong += read_values(never(image, one)) != image.values();
      wrong += read_values(always(image, one)) != changed;
      const auto some = half(image, one);
      const auto values = read_values(some);
      wrong += values != changed && values != image.values();
      wrong += read_values(half(image, one)) != values;
      if (i < 8) wrong += !penstock_test::all_ways_agree(some);
      count += values == changed;
    }
    CHECK(wrong == 0);
    CHECK(count > 150);
    CHECK(count < 250);
  };
  share(ps::random_invert(0), ps::random_invert(1), ps::random_invert(), ps::invert());
  share(ps::random_solarize(99, 0), ps::random_solarize(99, 1), ps::random_solarize(99), ps::solarize(99));
  share(ps::random_posterize(2, 0), ps::random_posterize(2, 1), ps::random_posterize(2), ps::posterize(2));
  share(ps::random_autocontrast(0), ps::random_autocontrast(1), ps::random_autocontrast(),
        ps::autocontrast());
  const test_image<std::uint8_t, 1> large({40, 40}, 5);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  CHECK(read_values(ps::random_equalize(0)(large, c)) == large.values());
  const auto changed = read_values(ps::equalize()(large, c));
  CHECK(read_values(ps::random_equalize(1)(large, c)) == changed);
  CHECK(changed != large.values());
}

TEST_CASE("image/lookup: bad arguments") {
  using Catch::Matchers::Contains;
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const double bad : {nan, inf, -inf, -0.1, 1.1}) {
    CHECK_THROWS_WITH(ps::random_invert(bad), Contains("the probability is "));
    CHECK_THROWS_AS(ps::random_solarize(1, bad), ps::error);
    CHECK_THROWS_AS(ps::random_posterize(1, bad), ps::error);
    CHECK_THROWS_AS(ps::random_autocontrast(bad), ps::error);
    CHECK_THROWS_AS(ps::random_equalize(bad), ps::error);
  }
  for (const double bad : {nan, inf, -1.0, 256.5}) {
    CHECK_THROWS_WITH(ps::solarize(bad), Contains("pass a number from 0 to 256"));
    CHECK_THROWS_AS(ps::random_solarize(bad), ps::error);
  }
  for (const int bad : {-1, 9}) {
    CHECK_THROWS_WITH(ps::posterize(bad), Contains("the number of bits is "));
    CHECK_THROWS_AS(ps::random_posterize(bad), ps::error);
  }
  for (const double bad : {nan, inf, -1.0, 2e6}) {
    CHECK_THROWS_WITH(ps::brightness(bad), Contains("brightness: the factor is "));
    CHECK_THROWS_WITH(ps::contrast(bad), Contains("contrast: the factor is "));
  }
}

TEST_CASE("image/lookup: what arrives, an empty image, allocations") {
  using operation = decltype(ps::invert());
  using bytes = test_image<std::uint8_t, 3>;
  using floats = ps::converted_image<bytes, float>;
  using planes = ps::chw_array<bytes>;
  CHECK(std::is_same_v<ps::detail::function_check<operation, bytes>::wrong, ps::mistakes::none>);
  CHECK(
      std::is_same_v<ps::detail::function_check<operation, int>::wrong, ps::mistakes::operation_wants_image>);
  CHECK(std::is_same_v<ps::detail::function_check<operation, floats>::wrong,
                       ps::mistakes::operation_wants_bytes>);
  CHECK(std::is_same_v<ps::detail::function_check<operation, planes>::wrong,
                       ps::mistakes::operation_after_to_chw>);
  ps::image_scratch scratch;
  const ps::call<ps::image_scratch> c{{}, 0, 0, 0, scratch};
  const bytes empty({0, 0}, 1);
  CHECK(read_values(ps::contrast(0.5)(empty, c)).empty());
  CHECK(read_values(ps::equalize()(empty, c)).empty());
  CHECK(read_values(ps::autocontrast()(empty, c)).empty());
  const bytes image({20, 10}, 1);
  const auto once = [&] {
    (void)ps::equalize()(image, c).finish();
    (void)ps::contrast(0.5)(image, c).finish();
  };
  once();
  CHECK(penstock_test::allocations_of(once) == 0);
}

}  // namespace lookup_test
