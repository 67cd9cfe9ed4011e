// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/tf_example_bytes.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace std::string_view_literals;

TEST_CASE("codec/tf_example_bytes: the vector of the format's description") {
  CHECK(ps::tf_example_bytes({{"label", 7}, {"x", "ab"}}) ==
        "\x0a\x1d\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x07"
        "\x0a\x0b\x0a\x01x\x12\x06\x0a\x04\x0a\x02\x61\x62"sv);
  CHECK(ps::tf_example_bytes(std::span<const ps::tf_value>()) == "\x0a\x00"sv);
}

TEST_CASE("codec/tf_example_bytes: several values, negative ones, none") {
  const std::array<float, 2> floats{0.5f, -1.0f};
  CHECK(ps::tf_example_bytes({{"f", std::span<const float>(floats)}}) ==
        "\x0a\x13\x0a\x11\x0a\x01"
        "f\x12\x0c\x12\x0a\x0a\x08\x00\x00\x00\x3f\x00\x00\x80\xbf"sv);
  CHECK(ps::tf_example_bytes({{"n", std::int64_t{-1}}}) ==
        "\x0a\x15\x0a\x13\x0a\x01n\x12\x0e\x1a\x0c\x0a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv);
  const std::array<ps::bytes_view, 2> texts{ps::bytes_of("a"sv), ps::bytes_of("bc"sv)};
  CHECK(ps::tf_example_bytes({{"t", std::span<const ps::bytes_view>(texts)}}) ==
        "\x0a\x10\x0a\x0e\x0a\x01t\x12\x09\x0a\x07\x0a\x01"
        "a\x0a\x02"
        "bc"sv);
  CHECK(ps::tf_example_bytes({{"e", std::span<const std::int64_t>()}}) ==
        "\x0a\x09\x0a\x07\x0a\x01"
        "e\x12\x02\x1a\x00"sv);
}

TEST_CASE("codec/tf_example_bytes: two features of one name are refused") {
  CHECK(penstock_test::error_of([] {
          (void)ps::tf_example_bytes({{"a", 1}, {"b", 2}, {"a", 3}});
        }) == "penstock: two features are called 'a'");
}

TEST_CASE("codec/tf_example_bytes: an integer that no example can hold is refused") {
  CHECK(penstock_test::error_of([] {
          (void)ps::tf_example_bytes({{"a", std::uint64_t{1} << 63}});
        }) ==
        "penstock: the value 9223372036854775808 of the feature 'a' is beyond the integers of an example, "
        "which go to "
        "2^63 - 1");
  CHECK(ps::tf_example_bytes({{"a", ~std::uint64_t{0} >> 1}}) ==
        ps::tf_example_bytes({{"a", ~std::int64_t{0} ^ std::numeric_limits<std::int64_t>::min()}}));
}
