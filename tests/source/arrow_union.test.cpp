// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/tables/arrow_union.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using ps::arrow_type;

namespace arrow_union_test {

arrow_type of(std::string_view format, std::vector<arrow_type> children = {}) {
  arrow_type made = arrow_type::of_format(format);
  made.children = std::move(children);
  return made;
}
arrow_type named(std::string_view name, arrow_type type) {
  type.name = name;
  return type;
}
arrow_type dictionary(arrow_type values) {
  arrow_type made = arrow_type::of_format("i");
  made.dictionary.push_back(std::move(values));
  return made;
}
std::string common(const arrow_type& a, const arrow_type& b) {
  const auto made = ps::detail::common_arrow_type(a, b), turned = ps::detail::common_arrow_type(b, a);
  CHECK(made.has_value() == turned.has_value());
  return made ? made->text() : "none";
}
std::string common(std::string_view a, std::string_view b) { return common(of(a), of(b)); }

}  // namespace arrow_union_test

using namespace arrow_union_test;

TEST_CASE("source/arrow_union: numbers have a place in a type that holds both exactly") {
  CHECK(common("i", "l") == "int64");
  CHECK(common("c", "C") == "int16");
  CHECK(common("I", "i") == "int64");
  CHECK(common("L", "l") == "none");
  CHECK(common("L", "C") == "uint64");
  CHECK(common("L", "c") == "none");
  CHECK(common("f", "g") == "double");
  CHECK(common("e", "f") == "float");
  CHECK(common("e", "C") == "halffloat");
  CHECK(common("e", "s") == "float");
  CHECK(common("f", "s") == "float");
  CHECK(common("f", "i") == "double");
  CHECK(common("g", "I") == "double");
  CHECK(common("g", "l") == "none");
  CHECK(common("b", "c") == "none");
  CHECK(common("l", "u") == "none");
  CHECK(common("n", "l") == "int64");
  CHECK(common("n", "n") == "null");
}

TEST_CASE("source/arrow_union: times take the finer unit, and zones only where both have one") {
  CHECK(common("tsm:", "tsu:") == "timestamp[us]");
  CHECK(common("tss:UTC", "tsn:UTC") == "timestamp[ns, tz=UTC]");
  CHECK(common("tsu:", "tsu:UTC") == "none");
  CHECK(common("tdD", "tdm") == "date64[ms]");
  CHECK(common("tdD", "tsu:") == "timestamp[us]");
  CHECK(common("tdm", "tss:") == "timestamp[ms]");
  CHECK(common("tdD", "tsu:UTC") == "none");
  CHECK(common("tts", "ttn") == "time64[ns]");
  CHECK(common("tDs", "tDm") == "duration[ms]");
  CHECK(common("tts", "tDs") == "none");
  CHECK(common("tiM", "tin") == "none");
  CHECK(common("tsu:", "l") == "none");
  const auto zones = ps::detail::common_arrow_type(of("tsm:UTC"), of("tsu:Europe/Oslo"));
  REQUIRE(zones);
  CHECK(zones->text() == "timestamp[us, tz=UTC]");
}

TEST_CASE("source/arrow_union: texts, bytes, dictionaries, decimals") {
  CHECK(common("u", "U") == "large_string");
  CHECK(common("u", "vu") == "string");
  CHECK(common("U", "vu") == "large_string");
  CHECK(common("u", "z") == "binary");
  CHECK(common("U", "Z") == "large_binary");
  CHECK(common(dictionary(of("u")), of("u")) == "string");
  CHECK(common(dictionary(of("u")), dictionary(of("u"))) == "dictionary<string>");
  CHECK(common(dictionary(of("i")), of("l")) == "int64");
  CHECK(common(dictionary(of("+l", {of("i")})), of("+l", {of("l")})) == "none");
  CHECK(common("w:4", "w:4") == "fixed_size_binary[4]");
  CHECK(common("w:4", "w:5") == "none");
  CHECK(common("d:10,2", "d:12,2") == "decimal128(12,2)");
  CHECK(common("d:10,2", "d:12,3") == "none");
  CHECK(common("d:40,2,256", "d:12,2") == "decimal256(40,2,256)");
}

TEST_CASE("source/arrow_union: lists, maps and structs in them") {
  CHECK(common(of("+l", {of("i")}), of("+l", {of("l")})) == "list<int64>");
  CHECK(common(of("+l", {of("i")}), of("+L", {of("i")})) == "large_list<int32>");
  CHECK(common(of("+w:2", {of("f")}), of("+w:2", {of("g")})) == "fixed_size_list<double>[2]");
  CHECK(common(of("+w:2", {of("f")}), of("+w:3", {of("f")})) == "list<float>");
  CHECK(common(of("+l", {of("n")}), of("+l", {of("u")})) == "list<string>");
  CHECK(common(of("+l", {of("i")}), of("+l", {of("u")})) == "none");
  CHECK(common(of("+l", {of("i")}), of("i")) == "none");
  const auto map = [](std::string_view key, std::string_view value, const char* called) {
    return of("+m", {of("+s", {named("key", of(key)), named(called, of(value))})});
  };
  CHECK(common(map("u", "i", "value"), map("U", "l", "item")) ==
        "map<struct<key: large_string, value: int64>>");
  CHECK(common(map("u", "i", "value"), of("+l", {of("i")})) == "none");
  const auto message = [](arrow_type a, arrow_type b) {
    return of("+l", {of("+s", {std::move(a), std::move(b)})});
  };
  const auto known = ps::detail::common_arrow_type(message(named("a", of("i")), named("b", of("u"))),
                                                   message(named("c", of("u")), named("a", of("l"))));
  REQUIRE(known);
  CHECK(known->text() == "list<struct<a: int64, b: string, c: string>>");
  CHECK(common(message(named("a", of("i")), named("b", of("u"))),
               message(named("b", of("u")), named("b", of("u")))) == "none");
}

TEST_CASE("source/arrow_union: columns of files together, and those that have no common type") {
  ps::detail::column_union all;
  all.add(of("+s", {named("id", of("l")), named("s", of("+s", {named("a", of("i"))})), named("x", of("i"))}),
          "one");
  all.add(of("+s", {named("x", of("l")), named("id", of("l")), named("late", of("n"))}), "two");
  all.add(
      of("+s", {named("s", of("+s", {named("b", of("u"))})), named("late", of("f")), named("x", of("u"))}),
      "three");
  all.add(of("+s", {named("s", of("l")), named("x", of("b")), named("id", of("n")), named("late", of("g"))}),
          "four");
  CHECK(all.schema().text() == "struct<id: int64, s: struct<a: int32, b: string>, x: int64, late: double>");
  REQUIRE(all.conflicts().size() == 2);
  CHECK(all.conflicts()[0].column == "x");
  CHECK(all.conflicts()[0].first == "two");
  CHECK(all.conflicts()[0].second == "three");
  CHECK(all.conflicts()[0].first_type == "int64");
  CHECK(all.conflicts()[0].second_type == "string");
  CHECK(all.conflicts()[1].column == "s");
  const std::vector<std::string> leaves{"id", "s.a", "s.b", "x", "late"};
  CHECK_NOTHROW(ps::detail::check_conflicts(all.conflicts(), leaves, ps::projection::of<"id", "late">()));
  CHECK_THROWS_WITH(ps::detail::check_conflicts(all.conflicts(), leaves, {}),
                    Catch::Contains("the column 's' is of type int64 in the file") &&
                        Catch::Contains("struct<a: int32, b: string> in 'one'") &&
                        Catch::Contains("[file four]"));
  CHECK_THROWS(ps::detail::check_conflicts(all.conflicts(), "s.b"));
  CHECK_NOTHROW(ps::detail::check_conflicts(all.conflicts(), "sa"));

  ps::detail::column_union twice;
  twice.add(of("+s", {named("a", of("l"))}), "one");
  twice.add(of("+s", {named("a", of("l")), named("a", of("l"))}), "two");
  CHECK_THROWS_WITH(ps::detail::check_conflicts(twice.conflicts(), "a"),
                    Catch::Contains("the file has two columns called 'a'") && Catch::Contains("[file two]"));
}
