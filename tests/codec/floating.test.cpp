// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/floating.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/codec_test.hpp"
#include "support/count_allocations.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace ps = penstock;
using penstock_test::contains;
static_assert(ps::codec<ps::floating>);

namespace floating_test {

template <class T = double>
T read(std::string_view text) {
  ps::no_scratch none;
  return ps::floating_as<T>{}.decode(text, none);
}

}  // namespace floating_test

TEST_CASE("codec/floating: reads back every finite number from its shortest form") {
  ps::rng random(1, 2, 3);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    char text[64] = " ";
    const auto end = std::to_chars(text + 1, text + 60, value).ptr;
    *end = '\n';
    REQUIRE(floating_test::read(std::string_view(text, static_cast<std::size_t>(end + 1 - text))) == value);
  }
  CHECK(floating_test::read("+.5") == 0.5);
  CHECK(floating_test::read("-1e-3") == -1e-3);
  CHECK(std::isnan(floating_test::read("nan")));
  CHECK(floating_test::read("-inf") == -std::numeric_limits<double>::infinity());
  CHECK(floating_test::read<float>("0.1") == 0.1f);
}

TEST_CASE("codec/floating: text that is not a number is an error that quotes it") {
  for (const std::string_view bad : {"", " ", "+", "-", "+-1", "1 2", "1,5", "1.5x", "e5", "cat", "0x1p3"}) {
    CAPTURE(bad);
    const auto error = codec_test::caught([&] { floating_test::read(bad); });
    CHECK(error.code == ps::errc::format);
    CHECK_THAT(error.line, contains("real number was expected"));
  }
  CHECK_THAT(codec_test::caught([] { floating_test::read("1e999"); }).line,
             contains("1e999") && contains("64 bits"));
  CHECK_THAT(codec_test::caught([] { floating_test::read<float>("1e99"); }).line, contains("32 bits"));
}

TEST_CASE("codec/floating: allocates nothing") {
  double value = 0;
  CHECK(penstock_test::allocations_of([&] { value = floating_test::read(" 0.25\n"); }) == 0);
  CHECK(value == 0.25);
}
