// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/mds_array.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/column_value.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using namespace std::string_view_literals;
using penstock_test::column_value;
using penstock_test::contains;

namespace mds_array_test {

template <class T>
struct array_read {
  ps::extents shape;
  std::vector<T> values;
};
template <class T>
array_read<T> array(std::string_view bytes, std::string_view encoding = "ndarray") {
  typename ps::mds_array<T>::scratch scratch;
  const auto made = ps::mds_array<T>{}.decode(column_value{bytes, encoding}, scratch);
  const auto view = made.finish();
  return {made.shape(), {view.data(), view.data() + view.shape().elements()}};
}
template <class T = std::uint8_t>
std::string refusal(std::string_view bytes, std::string_view encoding = "ndarray") {
  return penstock_test::error_of([&] { (void)array<T>(bytes, encoding); });
}
std::vector<std::string> list(std::string_view bytes, std::string_view encoding) {
  ps::mds_list::scratch scratch;
  return ps::mds_list{}.decode(column_value{bytes, encoding}, scratch);
}

static_assert(ps::codec<ps::mds_array<float>> && ps::codec<ps::pil_pixels> && ps::codec<ps::mds_list>);

TEST_CASE("codec/mds_array: an array says its type and shape, or its column does") {
  // The vector of the writer's source: [[0, 1, 2], [3, 4, 5]] of uint8.
  const auto whole = array<std::uint8_t>("\x08\x08\x02\x03\0\1\2\3\4\5"sv);
  CHECK(whole.shape == ps::extents(2, 3));
  CHECK(whole.values == std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5});
  const auto typed = array<std::int16_t>("\x04\x02\xff\xff\1\0"sv, "ndarray:int16");
  CHECK(typed.shape == ps::extents(2));
  CHECK(typed.values == std::vector<std::int16_t>{-1, 1});
  const auto shaped = array<float>("\0\0\x80\x3f\0\0\0\x40"sv, "ndarray:float32:1,2");
  CHECK(shaped.shape == ps::extents(1, 2));
  CHECK(shaped.values == std::vector<float>{1, 2});
  // Lengths of two, four and eight bytes.
  CHECK(array<std::uint8_t>("\x08\x05\2\0ab"sv).shape == ps::extents(2));
  CHECK(array<std::uint8_t>("\x08\x06\2\0\0\0ab"sv).shape == ps::extents(2));
  CHECK(array<std::uint8_t>("\x08\x07\2\0\0\0\0\0\0\0ab"sv).shape == ps::extents(2));
}

TEST_CASE("codec/mds_array: bytes that are not the announced array are errors with their place") {
  CHECK_THAT(refusal(""), contains("ends within its header"));
  CHECK_THAT(refusal("\x08"), contains("ends within its header"));
  CHECK_THAT(refusal("\x08\x08\x02"), contains("ends within its header"));
  CHECK_THAT(refusal("\x01\x04\x01z"), contains("the array's type is 1"));
  CHECK_THAT(refusal("\x08\x00z"sv), contains("0 dimensions; arrays of 1 to 8 are read"));
  CHECK_THAT(refusal("\x08\x24" + std::string(9, '\1') + "z"), contains("9 dimensions"));
  CHECK_THAT(refusal("\x08\x04\x02z"), contains("but its values have 1 bytes"));
  CHECK_THAT(refusal("\x08\x08\x02\x00"sv), contains("a dimension of length 0"));
  CHECK_THAT(refusal("\x08\x04\x01zz"), contains("but its values have 2 bytes"));
  CHECK_THAT(refusal("\x08\x0b" + std::string(16, '\xff') + "z"), contains("was announced"));
  CHECK_THAT(refusal<std::int8_t>("\x08\x04\x01z"), contains("is of uint8, but int8 was asked for"));
  CHECK_THAT(refusal("\x04\x01z", "ndarray:int8"), contains("is of int8, but uint8 was asked for"));
  CHECK_THAT(refusal("abcde", "ndarray:uint8:2,3"), contains("but its values have 5 bytes"));
  for (const std::string_view bad :
       {"str", "ndarrays", "ndarray:bool", "ndarray:uint8:", "ndarray:uint8:2,", "ndarray:uint8:0",
        "ndarray:uint8:2x", "ndarray:uint8:99999999999999999999"})
    CHECK_THAT(refusal("abcde", bad), contains("which has no arrays"));
  CHECK_THAT(refusal("a", "ndarray:uint8:1,1,1,1,1,1,1,1,1"), contains("more than 8 dimensions"));
}

TEST_CASE("codec/mds_array: images of PIL") {
  ps::pil_pixels::scratch scratch;
  const auto image = ps::pil_pixels{}.decode("\2\0\0\0\1\0\0\0\3\0\0\0RGBabcdef"sv, scratch);
  CHECK(image.shape() == ps::extents(1, 2, 3));
  CHECK(image.finish().data()[5] == 'f');
  const auto refused = [&](std::string_view bytes, std::string_view encoding = "pil") {
    return penstock_test::error_of([&] {
      (void)ps::pil_pixels{}.decode(column_value{bytes, encoding}, scratch);
    });
  };
  CHECK_THAT(refused("\2\0\0\0\1\0\0\0\3\0\0"sv), contains("ends within its header"));
  CHECK_THAT(refused("\2\0\0\0\1\0\0\0\4\0\0\0RGB"sv), contains("ends within its header"));
  CHECK_THAT(refused("\2\0\0\0\1\0\0\0\1\0\0\0Pab"sv), contains("the image is of mode 'P'"));
  CHECK_THAT(refused("\2\0\0\0\1\0\0\0\1\0\0\0Labc"sv), contains("an image of 2 x 1 in mode L has 3 bytes"));
  CHECK_THAT(refused("\xff\xff\xff\xff\xff\xff\xff\xff\4\0\0\0CMYKab"sv), contains("has 2 bytes"));
  CHECK_THAT(refused("", "jpeg"), contains("'jpeg', not 'pil'"));
}

TEST_CASE("codec/mds_array: lists") {
  CHECK(list("\0\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0abb"sv, "list[png]") == std::vector<std::string>{"a", "bb"});
  CHECK(list("\0\0\0\0\0\0\0\0"sv, "list[pil]").empty());
  CHECK(list("\1\0\0\0\2\0\0\0ab"sv, "jpeg_array") == std::vector<std::string>{"ab"});
  const auto refused = [](std::string_view bytes, std::string_view encoding = "list[png]") {
    return penstock_test::error_of([&] { (void)list(bytes, encoding); });
  };
  CHECK_THAT(refused("\0\0\0\0\0\0\0"sv), contains("ends within its header"));
  CHECK_THAT(refused("\0\0\0\0\2\0\0\0\0\0\0\0"sv), contains("announces 2 parts, but has 12 bytes"));
  CHECK_THAT(refused("\0\0\0\0\1\0\0\0\3\0\0\0ab"sv), contains("part 0 of the list goes beyond its end"));
  CHECK_THAT(refused("\0\0\0\0\1\0\0\0\1\0\0\0ab"sv), contains("1 bytes behind its last part"));
  CHECK_THAT(refused("", "ndarray"), contains("'ndarray', which has no lists"));
}

}  // namespace mds_array_test
