// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/arrow_type.hpp>

#include <penstock/core/half.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace ps = penstock;
using ps::arrow_layout;
using ps::arrow_number;
using ps::arrow_type;

static_assert(ps::arrow_number_of<std::int8_t> == arrow_number::int8 &&
              ps::arrow_number_of<std::uint64_t> == arrow_number::uint64 &&
              ps::arrow_number_of<long> == arrow_number::int64 &&
              ps::arrow_number_of<ps::half> == arrow_number::float16 &&
              ps::arrow_number_of<double> == arrow_number::float64);
static_assert(ps::arrow_number_of<bool> == arrow_number::none &&
              ps::arrow_number_of<char> == arrow_number::none &&
              ps::arrow_number_of<std::string> == arrow_number::none);

TEST_CASE("core/arrow_type: format strings of Arrow's C data interface") {
  struct row {
    std::string_view format, text;
    arrow_layout layout;
    arrow_number number;
    std::uint64_t width;
  };
  using enum arrow_layout;
  for (const row& one : {row{"n", "null", nothing, arrow_number::none, 0},
                         {"b", "bool", bits, arrow_number::none, 0},
                         {"l", "int64", fixed, arrow_number::int64, 8},
                         {"C", "uint8", fixed, arrow_number::uint8, 1},
                         {"e", "halffloat", fixed, arrow_number::float16, 2},
                         {"u", "string", bytes32, arrow_number::none, 0},
                         {"Z", "large_binary", bytes64, arrow_number::none, 0},
                         {"vu", "string_view", views, arrow_number::none, 16},
                         {"w:42", "fixed_size_binary[42]", fixed, arrow_number::none, 42},
                         {"d:19,10", "decimal128(19,10)", fixed, arrow_number::none, 16},
                         {"d:19,10,256", "decimal256(19,10,256)", fixed, arrow_number::none, 32},
                         {"tdD", "date32[day]", fixed, arrow_number::int32, 4},
                         {"tsu:UTC", "timestamp[us, tz=UTC]", fixed, arrow_number::int64, 8},
                         {"tsn:", "timestamp[ns]", fixed, arrow_number::int64, 8},
                         {"tin", "month_day_nano_interval", fixed, arrow_number::none, 16},
                         {"+l", "list", list32, arrow_number::none, 0},
                         {"+w:3", "fixed_size_list", fixed_list, arrow_number::none, 3},
                         {"+s", "struct", record, arrow_number::none, 0},
                         {"+us:0,1", "sparse_union", other, arrow_number::none, 0},
                         {"+r", "run_end_encoded", other, arrow_number::none, 0}}) {
    const arrow_type made = arrow_type::of_format(one.format);
    INFO(one.format);
    CHECK(made.text() == one.text);
    CHECK(made.layout == one.layout);
    CHECK(made.number == one.number);
    CHECK(made.width == one.width);
    CHECK(made.format == one.format);
  }
  for (const std::string_view bad :
       {"", "x", "w:", "w:-1", "w:x", "+w:", "+w:3,4", "d:1", "d:1,2,100", "d:,", "lx", "+", ":"}) {
    INFO(bad);
    CHECK(arrow_type::of_format(bad).layout == other);
  }
}

TEST_CASE("core/arrow_type: types that are read alike") {
  const auto made = [](std::string_view format, std::string_view child, std::string_view name) {
    arrow_type one = arrow_type::of_format(format);
    one.children.push_back(arrow_type::of_format(child));
    one.children.front().name = name;
    return one;
  };
  CHECK(made("+l", "i", "item").reads_like(made("+l", "i", "element")));
  CHECK_FALSE(made("+l", "i", "item").reads_like(made("+l", "l", "item")));
  CHECK_FALSE(made("+l", "i", "item").reads_like(made("+L", "i", "item")));
  CHECK_FALSE(made("+s", "i", "a").reads_like(made("+s", "i", "b")));
  CHECK(made("+s", "i", "a").text() == "struct<a: int32>");
  CHECK(made("+w:2", "f", "item").text() == "fixed_size_list<float>[2]");
  arrow_type numbers = arrow_type::of_format("i"), plain = numbers;
  numbers.dictionary.push_back(arrow_type::of_format("u"));
  CHECK(numbers.text() == "dictionary<string>");
  CHECK_FALSE(numbers.reads_like(plain));
  CHECK(numbers.reads_like(numbers));
}
