// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/codec/arrow_value.hpp>

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/core/record.hpp>
#include <penstock/core/tensor.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ps = penstock;
using ps::arrow_column;
using ps::arrow_type;

namespace arrow_value_test {

struct member {
  ps::arrow_cell of;
  [[nodiscard]] ps::arrow_cell cell() const { return of; }
};

/// A column of numbers, the second of which is null if `nulls`.
template <class T>
struct numbers {
  arrow_type type;
  std::vector<T> values;
  std::array<std::uint8_t, 1> valid{0b11111101};
  bool nulls = false;

  [[nodiscard]] arrow_column column() const {
    arrow_column made;
    made.type = &type;
    made.length = values.size();
    made.values = reinterpret_cast<const std::byte*>(values.data());
    if (nulls) made.validity = reinterpret_cast<const std::byte*>(valid.data());
    return made;
  }
};

template <class Codec>
auto read(const arrow_column& column, std::uint64_t row) {
  typename Codec::scratch scratch;
  return Codec{}.decode(member{{column, row}}, scratch);
}

/// A list over a child.
struct lists {
  arrow_type type;
  std::vector<std::uint32_t> offsets;
  arrow_column child;

  lists(std::string_view format, const arrow_type& of, std::vector<std::uint32_t> given, arrow_column inner)
      : type(arrow_type::of_format(format)), offsets(std::move(given)), child(std::move(inner)) {
    type.children.push_back(of);
    type.name = "lists";
  }
  [[nodiscard]] arrow_column column() const {
    arrow_column made;
    made.type = &type;
    made.length = offsets.empty() ? child.length / type.width : offsets.size() - 1;
    made.offsets = reinterpret_cast<const std::byte*>(offsets.data());
    made.children.push_back(child);
    return made;
  }
};

}  // namespace arrow_value_test

using namespace arrow_value_test;

TEST_CASE("codec/arrow_value: whole numbers of any type, if they fit") {
  const numbers<std::int64_t> wide{arrow_type::of_format("l"), {5, -1, 300, std::int64_t{1} << 40}};
  const arrow_column column = wide.column();
  CHECK(read<ps::arrow_value<std::int64_t>>(column, 3) == std::int64_t{1} << 40);
  CHECK(read<ps::arrow_value<std::uint8_t>>(column, 0) == 5);
  CHECK(read<ps::arrow_value<std::int8_t>>(column, 1) == -1);
  CHECK_THROWS_WITH(read<ps::arrow_value<std::uint64_t>>(column, 1), Catch::Contains("does not fit"));
  CHECK_THROWS_WITH(read<ps::arrow_value<std::int8_t>>(column, 2), Catch::Contains("which is of type int64"));
  CHECK_THROWS_WITH(read<ps::arrow_value<float>>(column, 0), Catch::Contains("a floating-point number"));
  const numbers<std::uint64_t> large{arrow_type::of_format("L"), {~std::uint64_t{0}}};
  CHECK_THROWS_AS(read<ps::arrow_value<std::int64_t>>(large.column(), 0), ps::error);
  const numbers<std::int32_t> days{arrow_type::of_format("tdD"), {19000}};
  CHECK(read<ps::arrow_value<std::int32_t>>(days.column(), 0) == 19000);
  CHECK(read<ps::arrow_value<std::int64_t>>(days.column(), 0) == 19000);
}

TEST_CASE("codec/arrow_value: floating-point numbers of at most as many bytes") {
  const numbers<float> single{arrow_type::of_format("f"), {0.5f}};
  CHECK(read<ps::arrow_value<float>>(single.column(), 0) == 0.5f);
  CHECK(read<ps::arrow_value<double>>(single.column(), 0) == 0.5);
  CHECK_THROWS_WITH(read<ps::arrow_value<std::int32_t>>(single.column(), 0),
                    Catch::Contains("a whole number"));
  const numbers<double> twice{arrow_type::of_format("g"), {0.1}};
  CHECK(read<ps::arrow_value<double>>(twice.column(), 0) == 0.1);
  CHECK_THROWS_AS(read<ps::arrow_value<float>>(twice.column(), 0), ps::error);
  const numbers<ps::half> small{arrow_type::of_format("e"), {ps::half(1.5f)}};
  CHECK(read<ps::arrow_value<float>>(small.column(), 0) == 1.5f);
  CHECK(read<ps::arrow_value<ps::half>>(small.column(), 0) == 1.5f);
  CHECK_THROWS_AS(read<ps::arrow_value<ps::half>>(single.column(), 0), ps::error);
}

TEST_CASE("codec/arrow_value: a null is none, what is given for it, or an error") {
  const numbers<std::int64_t> some{arrow_type::of_format("l"), {5, 6}, {0b11111101}, true};
  const arrow_column column = some.column();
  CHECK(read<ps::arrow_value<std::optional<std::int64_t>>>(column, 0) == 5);
  CHECK(read<ps::arrow_value<std::optional<std::int64_t>>>(column, 1) == std::nullopt);
  CHECK(read<ps::arrow_value<std::int64_t, -1>>(column, 1) == -1);
  CHECK(read<ps::arrow_value<std::int64_t, -1>>(column, 0) == 5);
  try {
    (void)read<ps::arrow_value<std::int64_t>>(column, 1);
    FAIL("no error was thrown");
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::missing);
  }
  const arrow_type type = arrow_type::of_format("n");
  arrow_column nothing;
  nothing.type = &type;
  nothing.length = 3;
  CHECK(read<ps::arrow_value<std::optional<std::string>>>(nothing, 2) == std::nullopt);
  CHECK_THROWS_AS(read<ps::arrow_value<bool>>(nothing, 2), ps::error);
}

TEST_CASE("codec/arrow_value: bytes of fixed width") {
  const numbers<std::array<std::uint8_t, 16>> decimals{arrow_type::of_format("d:20,3"), {{{1, 2}}}};
  CHECK(read<ps::arrow_value<std::array<std::byte, 16>>>(decimals.column(), 0)[1] == std::byte{2});
  CHECK_THROWS_AS((read<ps::arrow_value<std::array<std::byte, 8>>>(decimals.column(), 0)), ps::error);
  CHECK(read<ps::arrow_value<ps::bytes>>(decimals.column(), 0).size() == 16);
  const numbers<std::int64_t> whole{arrow_type::of_format("l"), {5}};
  CHECK_THROWS_WITH(read<ps::arrow_value<std::string>>(whole.column(), 0),
                    Catch::Contains("bytes or a text was asked for"));
}

TEST_CASE("codec/arrow_value: lists in place, and as vectors") {
  const numbers<std::int32_t> inner{arrow_type::of_format("i"), {1, 2, 3, 4}};
  const lists rows("+l", inner.type, {0, 1, 1, 4}, inner.column());
  const arrow_column column = rows.column();
  ps::arrow_value<std::span<const std::int32_t>>::scratch scratch;
  const auto span = ps::arrow_value<std::span<const std::int32_t>>{}.decode(member{{column, 2}}, scratch);
  CHECK(span.size() == 3);
  CHECK(span.data() == inner.values.data() + 1);
  CHECK(read<ps::arrow_value<std::vector<std::int64_t>>>(column, 2) == std::vector<std::int64_t>{2, 3, 4});
  CHECK(read<ps::arrow_value<std::vector<std::int32_t>>>(column, 1).empty());
  CHECK_THROWS_WITH((read<ps::arrow_value<std::span<const std::int64_t>>>(column, 2)),
                    Catch::Contains("a list of another type"));
  numbers<std::int32_t> holed = inner;
  holed.nulls = true;
  const lists with_null("+l", inner.type, {0, 4}, holed.column());
  CHECK_THROWS_AS((read<ps::arrow_value<std::span<const std::int32_t>>>(with_null.column(), 0)), ps::error);
  CHECK(read<ps::arrow_value<std::vector<std::optional<std::int32_t>>>>(with_null.column(), 0)[1] ==
        std::nullopt);
}

TEST_CASE("codec/arrow_value: values that are not aligned are copied") {
  alignas(8) std::array<std::byte, 17> bytes{};
  const std::array<std::int64_t, 2> numbers_of{7, 8};
  std::memcpy(bytes.data() + 1, numbers_of.data(), sizeof(numbers_of));
  const arrow_type type = arrow_type::of_format("l");
  arrow_column child;
  child.type = &type;
  child.length = 2;
  child.values = bytes.data() + 1;
  const lists rows("+w:2", type, {}, child);
  const arrow_column column = rows.column();
  ps::arrow_value<std::span<const std::int64_t>>::scratch scratch;
  const auto span = ps::arrow_value<std::span<const std::int64_t>>{}.decode(member{{column, 0}}, scratch);
  CHECK(span[1] == 8);
  CHECK(reinterpret_cast<std::uintptr_t>(span.data()) % 8 == 0);
}

TEST_CASE("codec/arrow_value: a list of values that take no space is bounded") {
  arrow_type pairs_of_none = arrow_type::of_format("+w:2");
  pairs_of_none.children.push_back(arrow_type::of_format("+w:0"));
  pairs_of_none.children.front().children.push_back(arrow_type::of_format("l"));
  for (const arrow_type& type : {arrow_type::of_format("n"), arrow_type::of_format("w:0"),
                                 arrow_type::of_format("+s"), arrow_type::of_format("+r"), pairs_of_none}) {
    INFO(type.text());
    arrow_column child;
    child.type = &type;
    child.length = std::uint64_t{1} << 40;
    arrow_type outer = arrow_type::of_format("+L");
    outer.children.push_back(type);
    const std::array<std::uint64_t, 2> offsets{0, child.length};
    arrow_column column;
    column.type = &outer;
    column.length = 1;
    column.offsets = reinterpret_cast<const std::byte*>(offsets.data());
    column.children.push_back(child);
    const auto bounded = Catch::Contains("values that take no space; the limit is 1048576");
    CHECK_THROWS_WITH((read<ps::arrow_value<std::vector<std::optional<std::string>>>>(column, 0)), bounded);
    CHECK_THROWS_WITH(read<ps::arrow_array<std::int64_t>>(column, 0), bounded);
  }
}

TEST_CASE("codec/arrow_value: lists that make an array, of up to eight dimensions") {
  const numbers<std::uint8_t> inner{arrow_type::of_format("C"), {1, 2, 3, 4, 5, 6}};
  const lists pairs("+l", inner.type, {0, 2, 4, 6}, inner.column());
  const lists rows("+l", pairs.type, {0, 3, 3}, pairs.column());
  const arrow_column column = rows.column();
  ps::arrow_array<std::uint8_t>::scratch scratch;
  const auto array = ps::arrow_array<std::uint8_t>{}.decode(member{{column, 0}}, scratch);
  CHECK(array.shape() == ps::extents(3, 2));
  CHECK(array.finish().flat()[5] == 6);
  CHECK(array.finish().data() == inner.values.data());
  CHECK(read<ps::arrow_array<std::uint8_t>>(column, 1).shape() == ps::extents(0, 0));
  CHECK_THROWS_AS(read<ps::arrow_array<float>>(column, 0), ps::error);
  const lists uneven("+l", inner.type, {0, 2, 3, 6}, inner.column());
  const lists bad("+l", uneven.type, {0, 3}, uneven.column());
  CHECK_THROWS_WITH(read<ps::arrow_array<std::uint8_t>>(bad.column(), 0),
                    Catch::Contains("have different lengths"));
  std::vector<lists> nested;
  nested.reserve(9);
  nested.emplace_back("+w:1", inner.type, std::vector<std::uint32_t>{}, inner.column());
  for (int i = 0; i < 8; ++i)
    nested.emplace_back("+w:1", nested.back().type, std::vector<std::uint32_t>{}, nested.back().column());
  CHECK(read<ps::arrow_array<std::uint8_t>>(nested[7].column(), 0).shape().rank() == 8);
  CHECK_THROWS_WITH(read<ps::arrow_array<std::uint8_t>>(nested[8].column(), 0),
                    Catch::Contains("nested deeper than the 8"));
}

TEST_CASE("codec/arrow_value: bytes of something else are none of Arrow's") {
  ps::arrow_value<std::int64_t>::scratch scratch;
  CHECK_THROWS_WITH((void)ps::arrow_value<std::int64_t>{}.decode(std::string_view("12345678"), scratch),
                    Catch::Contains("arrow_value reads values of arrow_ipc and arrow_stream"));
}

TEST_CASE("codec/arrow_value: structs in lists, by the names of their fields, and maps") {
  const std::string_view text = "abcd";
  const std::vector<std::uint32_t> cuts{0, 1, 3, 4};
  arrow_type texts = arrow_type::of_format("u");
  texts.name = "s";
  arrow_column words;
  words.type = &texts;
  words.length = 3;
  words.values = reinterpret_cast<const std::byte*>(text.data());
  words.bytes = text.size();
  words.offsets = reinterpret_cast<const std::byte*>(cuts.data());
  numbers<std::int32_t> counts{arrow_type::of_format("i"), {7, 8, 9}, {0b11111101}, true};
  counts.type.name = "n";
  arrow_type pair = arrow_type::of_format("+s");
  pair.children = {texts, counts.type};
  pair.name = "element";
  arrow_column pairs;
  pairs.type = &pair;
  pairs.length = 3;
  pairs.children = {words, counts.column()};
  const lists rows("+l", pair, {0, 3, 3}, pairs);
  const arrow_column column = rows.column();

  using one = ps::arrow_struct<ps::field<"n", std::optional<std::int64_t>>, ps::field<"s", std::string>,
                               ps::field<"later", std::optional<double>>>;
  const auto found = read<ps::arrow_list<one>>(column, 0);
  REQUIRE(found.size() == 3);
  CHECK(ps::get<"s">(found[1]) == "bc");
  CHECK(ps::get<"n">(found[1]) == std::nullopt);
  CHECK(ps::get<"n">(found[2]) == 9);
  CHECK(ps::get<"later">(found[2]) == std::nullopt);
  CHECK(read<ps::arrow_value<std::vector<one>>>(column, 1).empty());
  using record = ps::record<ps::field<"s", std::string_view>>;
  CHECK(ps::get<"s">(read<ps::arrow_value<std::vector<record>>>(column, 0)[2]) == "d");
  CHECK_THROWS_WITH(
      (read<ps::arrow_list<ps::arrow_struct<ps::field<"n", int>>>>(column, 0)),
      Catch::Contains("the value of the column 'n' is null") && Catch::Contains("in value 1 of 'lists'"));
  CHECK_THROWS_WITH((read<ps::arrow_list<ps::arrow_struct<ps::field<"x", int>>>>(column, 0)),
                    Catch::Contains("the struct 'element' has no field 'x', only s, n"));
  CHECK_THROWS_WITH((read<ps::arrow_list<std::int64_t>>(column, 0)),
                    Catch::Contains("of type struct<s: string, n: int32>"));

  // An entry of a map is such a struct.
  const lists entries("+m", pair, {0, 3, 3}, pairs);
  const arrow_column mapped = entries.column();
  using counted = std::map<std::string, std::optional<int>>;
  CHECK(read<ps::arrow_value<counted>>(mapped, 0) == counted{{"a", 7}, {"bc", std::nullopt}, {"d", 9}});
  CHECK(read<ps::arrow_value<std::unordered_map<std::string, std::optional<int>>>>(mapped, 1).empty());
  using in_order = std::vector<std::pair<std::string, std::optional<int>>>;
  CHECK(read<ps::arrow_value<in_order>>(mapped, 0) == in_order{{"a", 7}, {"bc", std::nullopt}, {"d", 9}});
  CHECK_THROWS_AS((read<ps::arrow_value<std::map<std::string, int>>>(mapped, 0)), ps::error);
  CHECK_THROWS_WITH((read<ps::arrow_value<std::vector<std::pair<int, int>>>>(
                        lists("+l", counts.type, {0, 3}, counts.column()).column(), 0)),
                    Catch::Contains("a pair was asked for"));

  // The same without names that are known when this is compiled.
  std::string all;
  for (const ps::arrow_cell cell : ps::arrow_cell(column, 0).list())
    all.append(cell.field("s").as<std::string_view>()).append(cell.field(1).is_null() ? "-" : "+");
  CHECK(all == "a+bc-d+");
  CHECK(ps::arrow_cell(mapped, 0).as<counted>().size() == 3);
}

TEST_CASE("codec/arrow_value: lists of bool, and of a number of values that is known") {
  const std::array<std::uint8_t, 1> bits{0b10110};
  const arrow_type type = arrow_type::of_format("b");
  arrow_column truths;
  truths.type = &type;
  truths.length = 5;
  truths.values = reinterpret_cast<const std::byte*>(bits.data());
  const lists rows("+l", type, {0, 2, 2, 5}, truths);
  const arrow_column column = rows.column();
  CHECK(read<ps::arrow_list<bool>>(column, 2) == std::vector<bool>{true, false, true});
  ps::arrow_value<std::span<const bool>>::scratch scratch;
  const auto shown = ps::arrow_value<std::span<const bool>>{}.decode(member{{column, 2}}, scratch);
  CHECK(std::vector<bool>(shown.begin(), shown.end()) == std::vector<bool>{true, false, true});
  truths.validity = truths.values;
  const lists holed("+l", type, {0, 5}, truths);
  CHECK_THROWS_WITH((read<ps::arrow_value<std::span<const bool>>>(holed.column(), 0)),
                    Catch::Contains("a value in a list of the column 'lists' is null"));
  CHECK(read<ps::arrow_list<std::optional<bool>>>(holed.column(), 0) ==
        std::vector<std::optional<bool>>{std::nullopt, true, true, std::nullopt, true});
  const numbers<float> flat{arrow_type::of_format("f"), {1, 2, 3, 4}};
  const lists fixed("+w:2", flat.type, {}, flat.column());
  const arrow_column two = fixed.column();
  CHECK((read<ps::arrow_value<std::array<float, 2>>>(two, 1)) == std::array<float, 2>{3, 4});
  CHECK_THROWS_WITH((read<ps::arrow_value<std::array<float, 3>>>(two, 1)),
                    Catch::Contains("has 2 values, and 3 were asked for"));
}

TEST_CASE("codec/arrow_value: several lists of a value that are not aligned have memory of their own") {
  alignas(8) std::array<std::byte, 33> bytes{};
  const std::array<std::int64_t, 4> values{1, 2, 3, 4};
  std::memcpy(bytes.data() + 1, values.data(), sizeof(values));
  const arrow_type type = arrow_type::of_format("l");
  arrow_column child;
  child.type = &type;
  child.length = 4;
  child.values = bytes.data() + 1;
  const lists inner("+w:2", type, {}, child);
  const lists outer("+w:2", inner.type, {}, inner.column());
  const arrow_column column = outer.column();
  using codec = ps::arrow_value<std::vector<std::span<const std::int64_t>>>;
  codec::scratch scratch;
  for (int i = 0; i < 2; ++i) {
    const auto found = codec{}.decode(member{{column, 0}}, scratch);
    CHECK(found[0][1] == 2);
    CHECK(found[1][1] == 4);
  }
}
