// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/litdata_array.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/column_value.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::column_value;
using penstock_test::contains;
using namespace std::string_view_literals;

namespace litdata_array_test {

template <class T>
std::string shown(std::string_view bytes, std::string_view format) {
  typename ps::litdata_array<T>::scratch scratch;
  const auto array = ps::litdata_array<T>{}.decode(column_value{bytes, format}, scratch);
  const auto view = array.finish();
  std::string all = ps::to_string(view.shape());
  for (std::size_t i = 0; i < view.shape().elements(); ++i) all += " " + std::to_string(view.data()[i]);
  return all;
}
template <class T>
std::string refusal(std::string_view bytes, std::string_view format) {
  return penstock_test::error_of([&] { (void)shown<T>(bytes, format); });
}
const std::string two_by_one = ps::to_string(ps::extents(2, 1)), two = ps::to_string(ps::extents(2));

TEST_CASE("codec/litdata_array: headers in both byte orders, and without one") {
  const auto big = "\0\0\0\x0e\0\0\0\2\0\0\0\2\0\0\0\1\7\0\xff\xff"sv;     // int16 since 0.2.57
  const auto little = "\x0e\0\0\0\2\0\0\0\2\0\0\0\1\0\0\0\7\0\xff\xff"sv;  // and before
  CHECK(shown<std::int16_t>(big, "tensor") == two_by_one + " 7 -1");
  CHECK(shown<std::int16_t>(little, "tensor") == two_by_one + " 7 -1");
  CHECK(shown<std::int16_t>("\1\0\0\0\2\0\0\0\2\0\0\0\1\0\0\0\7\0\xff\xff"sv, "numpy") ==
        two_by_one + " 7 -1");
  CHECK(shown<std::int16_t>("\7\0\xff\xff"sv, "no_header_tensor:14") == two + " 7 -1");
  CHECK(shown<std::int16_t>("\7\0\xff\xff"sv, "no_header_numpy:1") == two + " 7 -1");
  // bool
  CHECK(shown<std::uint8_t>("\0\0\0\x13\0\0\0\0\1"sv, "tensor") == ps::to_string(ps::extents(1)) + " 1");
  // A label as a tensor, in both.
  const std::string one = ps::to_string(ps::extents(1));
  CHECK(shown<std::int64_t>("\0\0\0\x12\0\0\0\0\7\0\0\0\0\0\0\0"sv, "tensor") == one + " 7");
  CHECK(shown<std::int64_t>("\x12\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0"sv, "tensor") == one + " 7");
  ps::litdata_array<std::int16_t>::scratch scratch;
  CHECK((ps::litdata_array<std::int16_t>{}.decode(big, scratch).shape() == ps::extents(2, 1)));
}

TEST_CASE("codec/litdata_array: another type, another format, and bytes that do not fit") {
  const auto big = "\0\0\0\x0e\0\0\0\1\0\0\0\2\7\0\xff\xff"sv;
  CHECK_THAT(refusal<float>(big, "tensor"), contains("the array is of int16, but float32 was asked for"));
  CHECK_THAT(refusal<float>("abcd", "no_header_tensor:16"), contains("the array is of int32, but float32"));
  CHECK_THAT(refusal<float>("abcd", "no_header_tensor:4"),
             contains("the array is of complex64, but float32"));
  CHECK_THAT(refusal<float>("abcd", "no_header_numpy"), contains("a number that no type of LitData's has"));
  CHECK_THAT(refusal<float>("abcd", "str"), contains("the leaf is of format 'str', which has no arrays"));
  CHECK_THAT(refusal<std::int16_t>("abc", "no_header_tensor:14"),
             contains("3 bytes, which are no values of int16"));
  CHECK_THAT(refusal<std::int16_t>("", "no_header_numpy:1"), contains("a length of 0, which is not read"));
  CHECK_THAT(refusal<float>("\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\4"sv, "tensor"),
             contains("a dimension of length 0, which is not read"));
  const std::string nine = std::string("\0\0\0\x0b\0\0\0\x09", 8) + [] {
    std::string ones;
    for (int i = 0; i < 9; ++i) ones += std::string("\0\0\0\1", 4);
    return ones;
  }() + "x";
  CHECK_THAT(refusal<std::uint8_t>(nine, "tensor"),
             contains("the array has 9 dimensions; arrays of up to 8 are read"));
  for (std::size_t size = 0; size < big.size(); ++size)
    CHECK_THAT(refusal<std::int16_t>(big.substr(0, size), "tensor"),
               contains("bytes are no array: their header does not match"));
  for (std::size_t i = 0; i < big.size() - 4; ++i)
    for (const int flip : {1, 2, 128}) {
      std::string bad(big);
      bad[i] = static_cast<char>(bad[i] ^ flip);
      CHECK(!refusal<std::int16_t>(bad, "tensor").empty());
    }
}

}  // namespace litdata_array_test
