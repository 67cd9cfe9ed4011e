// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/raw_number.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/column_value.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace ps = penstock;
using namespace std::string_view_literals;
using penstock_test::column_value;
using penstock_test::contains;

namespace {

template <class T>
T number(std::string_view bytes) {
  ps::no_scratch none;
  return ps::raw_number<T>{}.decode(bytes, none);
}

template <class T>
T column_number(std::string_view bytes, std::string_view encoding) {
  ps::no_scratch none;
  return ps::raw_number<T>{}.decode(column_value{bytes, encoding}, none);
}

}  // namespace

static_assert(ps::codec<ps::raw_number<float>>, "a codec");

TEST_CASE("codec/raw_number: numbers of every type, little-endian") {
  CHECK(number<std::uint8_t>("\xff"sv) == 255);
  CHECK(number<std::int8_t>("\xff"sv) == -1);
  CHECK(number<std::uint16_t>("\1\2"sv) == 0x201);
  CHECK(number<std::int32_t>("\xfe\xff\xff\xff"sv) == -2);
  CHECK(number<std::int64_t>("\0\0\0\0\0\0\0\x80"sv) == std::numeric_limits<std::int64_t>::min());
  CHECK(number<float>("\0\0\x80\x3f"sv) == 1.0f);
  CHECK(number<double>("\0\0\0\0\0\0\xf0\xbf"sv) == -1.0);
  CHECK(static_cast<float>(number<ps::half>("\0\x3e"sv)) == 1.5f);
}

TEST_CASE("codec/raw_number: too few and too many bytes are errors") {
  CHECK_THAT(penstock_test::error_of([] { number<std::int32_t>("\1\2\3"sv); }),
             contains("a number of 4 bytes was asked for, and there are 3"));
  CHECK_THAT(penstock_test::error_of([] { number<std::int32_t>("\1\2\3\4\5"sv); }), contains("there are 5"));
}

TEST_CASE("codec/raw_number: a column of another type is not converted") {
  CHECK(column_number<std::int64_t>("\7\0\0\0\0\0\0\0"sv, "int") == 7);
  CHECK(column_number<std::int64_t>("\7\0\0\0\0\0\0\0"sv, "int64") == 7);
  CHECK(column_number<std::int64_t>("\7\0\0\0\0\0\0\0"sv, "bytes") == 7);
  CHECK_THAT(penstock_test::error_of([] { column_number<std::uint64_t>("\7\0\0\0\0\0\0\0"sv, "int"); }),
             contains("'int', not uint64: nothing is converted silently"));
  CHECK_THAT(penstock_test::error_of([] { column_number<float>("\7\0\0\0"sv, "int32"); }),
             contains("'int32', not float32"));
  CHECK_THAT(penstock_test::error_of([] { column_number<float>("text"sv, "str"); }),
             contains("'str', not float32"));
}
