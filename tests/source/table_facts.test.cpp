// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/arrow_type.hpp>
#include <penstock/source/tables/table_facts.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;
using ps::arrow_type;

namespace table_facts_test {

arrow_type plain(const std::string& name, const char* format = "l") {
  arrow_type made = arrow_type::of_format(format);
  made.name = name;
  return made;
}
arrow_type of(const char* format, const std::string& name, std::vector<arrow_type> children) {
  arrow_type made = plain(name, format);
  made.children = std::move(children);
  return made;
}
arrow_type struct_of(const std::string& name, std::vector<arrow_type> children) {
  return of("+s", name, std::move(children));
}
arrow_type map_of(const std::string& name, const std::string& entries, arrow_type key, arrow_type value) {
  return of("+m", name, {struct_of(entries, {std::move(key), std::move(value)})});
}

/// A column of each kind that consists of others. Numbers are the same wherever a field stands.
ps::detail::table_facts table() {
  ps::detail::table_facts made;
  made.schema = struct_of("", {plain("i"), struct_of("r", {plain("x"), plain("y")}),
                               of("+l", "list", {struct_of("element", {plain("x"), plain("y")})}),
                               map_of("map", "", plain("key"), struct_of("value", {plain("z")}))});
  made.field_ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 10, 11, 12};
  return made;
}

// With letters for what is deleted.
std::string named(const ps::detail::table_facts& table, arrow_type file, const std::vector<int>& ids) {
  ps::detail::name_as_in_table(table, file, ids);
  std::string said = file.text();
  std::ranges::replace(said, '\0', '!');
  return said;
}

}  // namespace table_facts_test

using namespace table_facts_test;

TEST_CASE("source/table_facts: fields have the names of their numbers, also in lists and maps") {
  const auto facts = table();
  CHECK(ps::detail::numbers_of(facts.schema) == 1 + facts.field_ids.size());
  const arrow_type file =
      struct_of("", {of("+L", "old list", {struct_of("array", {plain("b"), plain("a"), plain("gone")})}),
                     map_of("old map", "key_value", plain("k"), struct_of("v", {plain("x"), plain("z")})),
                     struct_of("old r", {plain("x"), plain("n")}), plain("r"), plain("i")});
  CHECK(named(facts, file, {5, 6, 8, 7, 99, 9, -1, 10, 11, 98, 12, 2, 4, 3, 97, 1}) ==
        "struct<list: large_list<struct<y: int64, x: int64, !gone: int64>>, map: map<struct<key: int64, "
        "value: struct<!x: int64, z: int64>>>, r: struct<y: int64, x: int64>, !r: int64, i: int64>");
  // Another kind of column, and too few numbers.
  CHECK(named(facts, struct_of("", {of("+l", "r", {plain("x")}), plain("list")}), {2, 3, 5}) ==
        "struct<r: list<int64>, list: int64>");
  CHECK(named(facts, file, {5, 6}) ==
        "struct<list: large_list<struct<!b: int64, !a: int64, !gone: int64>>, !old map: map<struct<k: int64, "
        "v: struct<x: int64, z: int64>>>, !old r: struct<x: int64, n: int64>, !r: int64, !i: int64>");
}

TEST_CASE("source/table_facts: files without numbers have those of their names") {
  auto facts = table();
  const arrow_type file =
      struct_of("", {struct_of("r", {plain("b"), plain("x")}), plain("i"), plain("other"),
                     of("+l", "list", {struct_of("array", {plain("a"), plain("y")})}),
                     map_of("map", "key_value", plain("k"), struct_of("v", {plain("c"), plain("z")}))});
  const std::vector<int> none(13, -1);
  // Without names that the table gives them: as they are called.
  CHECK(named(facts, file, none) ==
        "struct<r: struct<b: int64, x: int64>, i: int64, !other: int64, list: list<struct<a: int64, y: "
        "int64>>, map: map<struct<k: int64, v: struct<c: int64, z: int64>>>>");
  facts.names =
      std::vector<ps::detail::stored_name>{{{"other", "i2"}, 1},
                                           {{"r"}, 2, {{{"a", "b"}, 3}, {{"y"}, 4}}},
                                           {{"list"}, 5, {{{"element"}, 6, {{{"a"}, 7}, {{"y"}, 8}}}}},
                                           {{"map"}, 9, {{{"key"}, 10}, {{"value"}, 11, {{{"c"}, 12}}}}},
                                           {{"i"}}};
  CHECK(named(facts, file, none) ==
        "struct<r: struct<x: int64, !x: int64>, !i: int64, i: int64, list: list<struct<x: int64, y: int64>>, "
        "map: map<struct<key: int64, value: struct<z: int64, !z: int64>>>>");
  // Numbers count more.
  CHECK(named(facts, struct_of("", {plain("other"), plain("i")}), {99, 1}) ==
        "struct<!other: int64, i: int64>");
}

TEST_CASE("source/table_facts: which types of files a table's column may have") {
  const auto fits = [](const arrow_type& file, const arrow_type& table) {
    using ps::detail::table_fit;
    const table_fit one = ps::detail::fit_in_table(file, table);
    CHECK(ps::detail::fit_in_table(table, file) == one);
    CHECK(one != table_fit::converted);
    return one == table_fit::as_they_are;
  };
  CHECK(fits(plain("a", "u"), plain("b", "U")));
  CHECK(fits(plain("a", "i"), plain("b", "l")));
  CHECK(fits(plain("a", "f"), plain("b", "g")));
  CHECK(fits(plain("a", "tsu:UTC"), plain("b", "tsu:")));
  CHECK(!fits(plain("a", "tsu:"), plain("b", "tsn:")));
  CHECK(fits(plain("a", "d:5,2"), plain("b", "d:9,2")));
  CHECK(!fits(plain("a", "l"), plain("b", "f")));
  CHECK(!fits(plain("a", "l"), plain("b", "g")));
  CHECK(fits(of("+L", "", {plain("a", "i")}), of("+l", "", {plain("b", "I")})));
  CHECK(!fits(of("+L", "", {plain("a", "g")}), of("+l", "", {plain("b")})));
  CHECK(fits(of("+L", "", {struct_of("a", {plain("x", "U")})}),
             of("+l", "", {struct_of("b", {plain("x", "u")})})));
  CHECK(!fits(struct_of("", {plain("x")}), struct_of("", {plain("y")})));
  CHECK(!fits(struct_of("", {plain("x"), plain("y")}), struct_of("", {plain("x")})));
  const auto texts = map_of("", "key_value", plain("k", "u"), plain("v", "U"));
  CHECK(fits(texts, map_of("", "entries", plain("key", "U"), plain("value", "U"))));
  CHECK(!fits(texts, map_of("", "entries", plain("key", "U"), plain("value"))));
  CHECK(!fits(texts, of("+l", "", {struct_of("entries", {plain("k", "U"), plain("v", "U")})})));
}

TEST_CASE("source/table_facts: which types are converted into those of a table, and exactly so") {
  const auto converts = [](const arrow_type& file, const arrow_type& table) {
    using ps::detail::table_fit;
    CHECK(ps::detail::fit_in_table(table, file) != table_fit::converted);  // into narrower ones never
    return ps::detail::fit_in_table(file, table) == table_fit::converted;
  };
  for (const char* const whole : {"c", "s", "i"}) CHECK(converts(plain("a", whole), plain("b", "g")));
  CHECK(!converts(plain("a", "l"), plain("b", "g")));
  CHECK(!converts(plain("a", "i"), plain("b", "f")));
  CHECK(converts(plain("a", "tdD"), plain("b", "tsu:")));
  CHECK(!converts(plain("a", "tdD"), plain("b", "tsu:UTC")));
  CHECK(!converts(plain("a", "tdm"), plain("b", "tsu:")));

  CHECK(converts(plain("a", "d:5,2"), plain("b", "d:6,3")));
  CHECK(!converts(plain("a", "d:5,2"), plain("b", "d:5,3")));
  CHECK(!converts(plain("a", "d:5,2"), plain("b", "d:9,1")));
  CHECK(converts(plain("a", "i"), plain("b", "d:12,2")));
  CHECK(!converts(plain("a", "i"), plain("b", "d:11,2")));
  CHECK(converts(plain("a", "l"), plain("b", "d:19,0")));
  CHECK(!converts(plain("a", "l"), plain("b", "d:18,0")));
  CHECK(!converts(plain("a", "g"), plain("b", "d:38,0")));
  CHECK(!converts(plain("a", "i"), plain("b", "d:x")));

  // What is in lists may be read in place.
  const auto list = [](const char* format) { return of("+l", "", {plain("a", format)}); };
  CHECK(converts(list("i"), list("l")));
  CHECK(converts(list("f"), list("g")));
  CHECK(!converts(list("i"), list("i")));
  CHECK(converts(struct_of("", {plain("x", "u"), plain("y", "c")}),
                 struct_of("", {plain("x", "U"), plain("y", "d:5,1")})));
  CHECK(converts(map_of("", "e", plain("k", "u"), list("s")), map_of("", "f", plain("m", "u"), list("i"))));
  CHECK(!converts(struct_of("", {plain("x", "u"), plain("y", "c")}),
                  struct_of("", {plain("x", "l"), plain("y", "g")})));
}
