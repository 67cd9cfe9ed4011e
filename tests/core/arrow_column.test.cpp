// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/arrow_column.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using ps::arrow_cell;
using ps::arrow_column;
using ps::arrow_type;

namespace arrow_column_test {

const std::byte* at(const void* data) { return static_cast<const std::byte*>(data); }

arrow_column column_of(const arrow_type& type, std::uint64_t length, const void* values) {
  arrow_column made;
  made.type = &type;
  made.length = length;
  made.values = at(values);
  return made;
}

}  // namespace arrow_column_test

using namespace arrow_column_test;

TEST_CASE("core/arrow_column: numbers, bits and nulls, from any offset") {
  const arrow_type type = arrow_type::of_format("s");
  const std::array<std::int16_t, 5> numbers{-1, 2, 3, 4, 500};
  const std::array<std::uint8_t, 1> valid{0b10110};
  arrow_column column = column_of(type, 3, numbers.data());
  column.offset = 2;
  column.validity = at(valid.data());
  CHECK(arrow_cell(column, 0).number<std::int16_t>() == 3);
  CHECK_FALSE(arrow_cell(column, 0).is_null());
  CHECK(arrow_cell(column, 1).is_null());
  CHECK(arrow_cell(column, 2).number<std::int16_t>() == 500);
  CHECK(arrow_cell(column, 2).bytes().size() == 2);
  CHECK(arrow_cell::null_of(column).is_null());
  const arrow_type bools = arrow_type::of_format("b");
  const arrow_column bits = column_of(bools, 5, valid.data());
  CHECK_FALSE(arrow_cell(bits, 0).bit());
  CHECK(arrow_cell(bits, 4).bit());
}

TEST_CASE("core/arrow_column: bytes between offsets, which may not lead out of the buffer") {
  for (const bool wide : {false, true}) {
    const arrow_type type = arrow_type::of_format(wide ? "Z" : "u");
    const std::string_view text = "onetwo";
    const std::array<std::uint32_t, 5> narrow{0, 3, 6, 2, 7};
    const std::array<std::uint64_t, 5> broad{0, 3, 6, 2, 7};
    arrow_column column = column_of(type, 4, text.data());
    column.bytes = text.size();
    column.offsets = wide ? at(broad.data()) : at(narrow.data());
    CHECK(ps::text_of(arrow_cell(column, 1).bytes()) == "two");
    CHECK_THROWS_WITH(arrow_cell(column, 2).bytes(), Catch::Contains("goes from 6 to 2 of the 6 there are"));
    CHECK_THROWS_WITH(arrow_cell(column, 3).bytes(), Catch::Contains("goes from 2 to 7 of the 6 there are"));
    CHECK_THROWS_WITH(arrow_cell(column, 0).list(), Catch::Contains("which is no list"));
  }
}

TEST_CASE("core/arrow_column: views hold short values, and say where long ones are") {
  const arrow_type type = arrow_type::of_format("vu");
  const std::string_view kept = "....fourteen bytes";
  std::array<std::uint32_t, 16> views{5, 0, 0, 0, 14, 0, 0, 4, 14, 0, 1, 4, 14, 0, 0, 5};
  const std::string_view five = "short";
  std::copy(five.begin(), five.end(), reinterpret_cast<char*>(views.data() + 1));
  arrow_column column = column_of(type, 4, views.data());
  column.buffers = {ps::bytes_of(kept)};
  CHECK(ps::text_of(arrow_cell(column, 0).bytes()) == "short");
  CHECK(ps::text_of(arrow_cell(column, 1).bytes()) == "fourteen bytes");
  CHECK_THROWS_WITH(arrow_cell(column, 2).bytes(), Catch::Contains("the data are damaged"));
  CHECK_THROWS_WITH(arrow_cell(column, 3).bytes(), Catch::Contains("goes from 5 to 19 of the 18 there are"));
}

TEST_CASE("core/arrow_column: lists are slices of their child") {
  arrow_type type = arrow_type::of_format("+l");
  type.children.push_back(arrow_type::of_format("i"));
  const std::array<std::int32_t, 4> numbers{1, 2, 3, 4};
  const std::array<std::uint32_t, 4> offsets{0, 1, 4, 9};
  arrow_column column = column_of(type, 3, nullptr);
  column.offsets = at(offsets.data());
  column.children.push_back(column_of(type.children[0], 4, numbers.data()));
  const ps::arrow_slice second = arrow_cell(column, 1).list();
  CHECK(second.count == 3);
  CHECK(arrow_cell(*second.column, second.first).number<std::int32_t>() == 2);
  CHECK_THROWS_WITH(arrow_cell(column, 2).list(), Catch::Contains("goes from 4 to 9 of the 4 there are"));
  CHECK_THROWS_WITH(arrow_cell(column, 0).bytes(),
                    Catch::Contains("list<int32>, which has no bytes of its own"));
  arrow_type pairs = arrow_type::of_format("+w:2");
  pairs.children = type.children;
  arrow_column two = column_of(pairs, 3, nullptr);
  two.children.push_back(column_of(pairs.children[0], 4, numbers.data()));
  CHECK(arrow_cell(two, 1).list().first == 2);
  CHECK_THROWS_AS(arrow_cell(two, 2).list(), ps::error);
}

TEST_CASE("core/arrow_column: numbers of dictionary values are followed through the dictionary's parts") {
  arrow_type type = arrow_type::of_format("c");
  type.name = "k";
  type.dictionary.push_back(arrow_type::of_format("l"));
  const std::array<std::int64_t, 2> first{10, 11}, second{12, 13};
  const std::array<std::int8_t, 5> numbers{0, 3, 2, 4, -1};
  const arrow_column one = column_of(type.dictionary[0], 2, first.data()),
                     two = column_of(type.dictionary[0], 2, second.data());
  arrow_column column = column_of(type, 5, numbers.data());
  column.dictionary = {&one, &two};
  CHECK(arrow_cell(column, 0).number<std::int64_t>() == 10);
  CHECK(arrow_cell(column, 1).number<std::int64_t>() == 13);
  CHECK(arrow_cell(column, 2).number<std::int64_t>() == 12);
  CHECK_THROWS_WITH(arrow_cell(column, 3),
                    Catch::Contains("the column 'k' has dictionary value 4, and the dictionary has 4"));
  CHECK_THROWS_AS(arrow_cell(column, 4), ps::error);
}

TEST_CASE("core/arrow_column: structs are replaced by their fields, which are null where their struct is") {
  arrow_type root = arrow_type::of_format("+s");
  arrow_type inner = arrow_type::of_format("+s");
  inner.name = "image";
  inner.children.push_back(arrow_type::of_format("C"));
  inner.children.front().name = "size";
  root.children = {arrow_type::of_format("C"), inner};
  root.children.front().name = "label";
  CHECK(ps::detail::arrow_leaf_names(root) == std::vector<std::string>{"label", "image.size"});
  const std::array<std::uint8_t, 6> numbers{1, 2, 3, 4, 5, 6};
  const std::array<std::uint8_t, 1> valid{0b1010};
  arrow_column batch = column_of(root, 2, nullptr);
  batch.offset = 1;
  batch.children = {column_of(root.children[0], 4, numbers.data()), column_of(root.children[1], 4, nullptr)};
  arrow_column& image = batch.children[1];
  image.offset = 1;
  image.validity = at(valid.data());
  image.children = {column_of(root.children[1].children[0], 6, numbers.data())};
  const auto leaves = ps::detail::arrow_leaves(batch);
  REQUIRE(leaves.size() == 2);
  CHECK(leaves[0].at(0).number<std::uint8_t>() == 2);
  CHECK(leaves[1].at(0).is_null());
  CHECK(leaves[1].at(1).number<std::uint8_t>() == 4);
  CHECK(leaves[0].rows == 3);
  CHECK(leaves[0].first == at(numbers.data() + 1));
  CHECK(leaves[1].rows == 4);
  CHECK(leaves[1].first == at(numbers.data() + 2));
}

TEST_CASE("core/arrow_column: rows of one width are where their first one and the width say") {
  arrow_type row = arrow_type::of_format("+w:2"), rows = arrow_type::of_format("+w:3");
  row.children = {arrow_type::of_format("s")};
  rows.children = {row};
  arrow_type root = arrow_type::of_format("+s");
  root.children = {rows};
  std::array<std::int16_t, 40> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int16_t>(i);
  arrow_column batch = column_of(root, 2, nullptr);
  batch.offset = 1;
  arrow_column outer = column_of(rows, 4, nullptr), inner = column_of(row, 15, nullptr),
               values = column_of(row.children[0], 36, numbers.data());
  outer.offset = 1;
  inner.offset = 1;
  values.offset = 2;
  const auto leaf_of = [&] {
    inner.children = {values};
    outer.children = {inner};
    batch.children = {outer};
    return ps::detail::arrow_leaves(batch).front();
  };
  const auto leaf = leaf_of();
  REQUIRE(leaf.rows == 3);
  CHECK(leaf.width == 12);
  for (std::uint64_t i = 0; i < leaf.rows; ++i) {
    const ps::arrow_slice lists = leaf.at(i).list();
    const ps::arrow_slice list = arrow_cell(*lists.column, lists.first).list();
    CHECK(arrow_cell(*list.column, list.first).bytes().data() == leaf.first + i * leaf.width);
  }
  values.length = 31;  // the last row lacks a number
  CHECK(leaf_of().rows == 0);
  values.length = 36;
  inner.length = 14;
  CHECK(leaf_of().rows == 0);
  inner.length = 15;
  outer.length = 1;  // the struct begins behind it
  CHECK(leaf_of().rows == 0);
}

TEST_CASE("core/arrow_column: columns of nothing but numbers, or lists of them, say so") {
  using ps::arrow_number;
  arrow_type list = arrow_type::of_format("+w:2"), lists = arrow_type::of_format("+w:3");
  list.children = {arrow_type::of_format("s")};
  lists.children = {list};
  arrow_type root = arrow_type::of_format("+s");
  root.children = {list.children[0], list, lists};
  const std::array<std::int16_t, 24> numbers{};
  const std::uint8_t bits[4] = {};
  arrow_column batch = column_of(root, 4, nullptr);
  batch.children = {column_of(root.children[0], 4, numbers.data()), column_of(root.children[1], 4, nullptr),
                    column_of(root.children[2], 4, nullptr)};
  batch.children[1].children = {column_of(list.children[0], 8, numbers.data())};
  batch.children[2].children = {column_of(list, 12, nullptr)};
  batch.children[2].children[0].children = {column_of(list.children[0], 24, numbers.data())};
  const auto found = [&] {
    std::vector<std::pair<arrow_number, arrow_number>> all;
    for (const auto& leaf : ps::detail::arrow_leaves(batch)) all.emplace_back(leaf.plain, leaf.listed);
    return all;
  };
  const auto none = arrow_number::none, number = arrow_number::int16;
  using numbers_of = std::vector<std::pair<arrow_number, arrow_number>>;
  CHECK(found() == numbers_of{{number, none}, {none, number}, {none, none}});
  batch.children[0].validity = at(bits);
  batch.children[1].children[0].validity = at(bits);
  CHECK(found() == numbers_of{{none, none}, {none, none}, {none, none}});
  batch.children[1].children[0].validity = nullptr;
  batch.children[1].validity = at(bits);
  CHECK(found()[1] == std::pair(none, none));
  batch.children[0].validity = batch.children[1].validity = nullptr;
  CHECK(found()[1] == std::pair(none, number));
  batch.validity = at(bits);
  CHECK(found() == numbers_of{{none, none}, {none, none}, {none, none}});
  batch.validity = nullptr;
  root.children[0].dictionary = {arrow_type::of_format("u")};
  CHECK(found()[0] == std::pair(none, none));
}

TEST_CASE("core/arrow_column: names of columns with dots and backticks, and of fields of the same path") {
  const auto named = [](std::string_view format, std::string name,
                        std::vector<ps::arrow_type> children = {}) {
    ps::arrow_type made = ps::arrow_type::of_format(format);
    made.name = std::move(name);
    made.children = std::move(children);
    return made;
  };
  using names = std::vector<std::string>;
  const auto root = named("+s", "",
                          {named("+s", "a", {named("l", "b"), named("l", "c")}), named("l", "a.b"),
                           named("l", "d.e"), named("l", "`")});
  CHECK(ps::detail::arrow_leaf_names(root) == names{"a.b", "a.c", "`a.b`", "d.e", "`"});
  CHECK(ps::detail::arrow_leaf_paths(root) == names{"a.b", "a.c", "`a.b`", "`d.e`", "````"});
  CHECK(ps::detail::arrow_path_part("a`.b") == "`a``.b`");
  CHECK(ps::detail::arrow_path_part("ab") == "ab");

  const auto twice = named("+s", "", {named("l", "x"), named("l", "y"), named("l", "x")});
  const names leaves = ps::detail::arrow_leaf_names(twice);
  CHECK(leaves == names{"x", "y", "x"});
  CHECK(ps::detail::find_arrow_leaf(leaves, "y") == 1);
  CHECK(ps::detail::find_arrow_leaf(leaves, "z") == 3);
  CHECK_THROWS_AS(ps::detail::find_arrow_leaf(leaves, "x"), ps::error);
}

TEST_CASE("core/arrow_column: list views, in any order") {
  const arrow_type number = arrow_type::of_format("s");
  const std::array<std::int16_t, 4> numbers{1, 2, 3, 4};
  for (const bool wide : {false, true}) {
    arrow_type type = arrow_type::of_format(wide ? "+vL" : "+vl");
    type.children.push_back(number);
    CHECK(type.is_list());
    const std::array<std::uint32_t, 4> narrow{2, 0, 1, 3}, narrow_sizes{2, 3, 0, 2};
    const std::array<std::uint64_t, 4> broad{2, 0, 1, 3};
    const std::array<std::uint64_t, 4> broad_sizes{2, 3, 0, ~std::uint64_t{0}};
    arrow_column column = column_of(type, 4, nullptr);
    column.offsets = wide ? at(broad.data()) : at(narrow.data());
    column.sizes = wide ? at(broad_sizes.data()) : at(narrow_sizes.data());
    column.children.push_back(column_of(number, 4, numbers.data()));
    int sum = 0;
    for (const arrow_cell one : arrow_cell(column, 0).list()) sum += one.number<std::int16_t>();
    CHECK(sum == 7);
    CHECK(arrow_cell(column, 1).list().size() == 3);
    CHECK(arrow_cell(column, 1).list()[2].number<std::int16_t>() == 3);
    CHECK(arrow_cell(column, 2).list().empty());
    CHECK_THROWS_WITH(arrow_cell(column, 3).list(), Catch::Contains("the data are damaged"));
  }
}

TEST_CASE("core/arrow_column: fields of a struct, by name and by place; what is null has none") {
  arrow_type number = arrow_type::of_format("s");
  number.name = "n";
  arrow_type type = arrow_type::of_format("+s");
  type.children.push_back(number);
  type.name = "box";
  const std::array<std::int16_t, 3> numbers{1, 2, 3};
  const std::array<std::uint8_t, 1> valid{0b101};
  arrow_column column = column_of(type, 3, nullptr);
  column.validity = at(valid.data());
  column.children.push_back(column_of(number, 3, numbers.data()));
  CHECK(arrow_cell(column, 2).field("n").number<std::int16_t>() == 3);
  CHECK(arrow_cell(column, 2).field(0).number<std::int16_t>() == 3);
  CHECK(arrow_cell(column, 1).field("n").is_null());
  CHECK_THROWS_WITH(arrow_cell(column, 0).field("m"),
                    Catch::Contains("the struct 'box' has no field 'm', only n"));
  CHECK_THROWS_WITH(arrow_cell(column, 0).field(1), Catch::Contains("has 1 fields, and none at place 1"));
  CHECK_THROWS_WITH(arrow_cell(column.children.front(), 0).field(0), Catch::Contains("which is no struct"));
  column.children.front().length = 1;
  CHECK_THROWS_WITH(arrow_cell(column, 2).field(0), Catch::Contains("the data are damaged"));

  arrow_type list = arrow_type::of_format("+l");
  list.children.push_back(number);
  const std::array<std::uint32_t, 3> offsets{0, 2, 3};
  arrow_column lists = column_of(list, 2, nullptr);
  lists.offsets = at(offsets.data());
  lists.children.push_back(column_of(number, 3, numbers.data()));
  CHECK(arrow_cell::null_of(lists).list().empty());
  for (const arrow_cell one : arrow_cell::null_of(lists).list()) FAIL(one.is_null());
}
