// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/where.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace where_test {

/// A column of numbers.
template <class T>
struct column {
  std::vector<T> values;
  ps::arrow_type type;
  ps::arrow_column made;

  column(std::string_view format, std::vector<T> given)
      : values(std::move(given)), type(ps::arrow_type::of_format(format)) {
    type.name = "c";
    made.type = &type;
    made.length = values.size();
    made.values = reinterpret_cast<const std::byte*>(values.data());
  }
  std::vector<bool> operator()(const ps::column_test& test) const {
    const ps::detail::bound_test bound(test, type);
    std::vector<bool> found;
    for (std::size_t i = 0; i < values.size(); ++i) found.push_back(bound.holds(ps::arrow_cell(made, i)));
    return found;
  }
};

using bits = std::vector<bool>;

/// The values between these bounds, with or without nulls.
ps::detail::column_bounds bounds_from(ps::column_constant low, ps::column_constant high,
                                      std::uint64_t nulls = 0) {
  ps::detail::column_bounds made;
  made.some = true;
  made.low = std::move(low);
  made.high = std::move(high);
  made.nulls = nulls;
  made.rows = 10;
  return made;
}

}  // namespace where_test

using namespace where_test;

TEST_CASE("source/where: whole numbers, signed and not, with whole numbers and others") {
  const column<std::int64_t> c("l", {-5, 0, 7, std::numeric_limits<std::int64_t>::min()});
  CHECK(c(ps::equals(7)) == bits{false, false, true, false});
  CHECK(c(ps::equals(7u)) == bits{false, false, true, false});
  CHECK(c(ps::differs_from(7)) == bits{true, true, false, true});
  CHECK(c(ps::less_than(0)) == bits{true, false, false, true});
  CHECK(c(ps::at_most(0.5)) == bits{true, true, false, true});
  CHECK(c(ps::greater_than(-5)) == bits{false, true, true, false});
  CHECK(c(ps::at_least(-5)) == bits{true, true, true, false});
  CHECK(c(ps::between(-5, 6.5)) == bits{true, true, false, false});
  CHECK(c(ps::one_of({7, -5})) == bits{true, false, true, false});
  CHECK(c(ps::less_than(std::numeric_limits<std::uint64_t>::max())) == bits{true, true, true, true});
  CHECK(c(ps::is_null()) == bits{false, false, false, false});
  CHECK(c(ps::is_not_null()) == bits{true, true, true, true});
  const column<std::uint64_t> u("L", {0, std::numeric_limits<std::uint64_t>::max()});
  CHECK(u(ps::greater_than(-1)) == bits{true, true});
  CHECK(u(ps::equals(std::numeric_limits<std::uint64_t>::max())) == bits{false, true});
  CHECK(u(ps::equals(-1)) == bits{false, false});
}

TEST_CASE("source/where: numbers of floating point, with NaN and zeros") {
  const column<float> c("f", {0.1f, -0.0f, NAN, 2});
  CHECK(c(ps::equals(0)) == bits{false, true, false, false});
  CHECK(c(ps::equals(0.1f)) == bits{true, false, false, false});
  CHECK(c(ps::equals(0.1)) == bits{false, false, false, false});  // as doubles, as in subset
  CHECK(c(ps::differs_from(2)) == bits{true, true, true, false});
  CHECK(c(ps::at_least(0)) == bits{true, true, false, true});
  CHECK(c(ps::less_than(NAN)) == bits{false, false, false, false});
}

TEST_CASE("source/where: bounds decide only what they can") {
  const ps::arrow_type whole = ps::arrow_type::of_format("l"), real = ps::arrow_type::of_format("g");
  const auto may = [&](const ps::column_test& test, const ps::detail::column_bounds& within) {
    return ps::detail::bound_test(test, whole).may_hold(within);
  };
  const auto must = [&](const ps::column_test& test, const ps::detail::column_bounds& within) {
    return ps::detail::bound_test(test, whole).must_hold(within);
  };
  CHECK(may(ps::equals(3), bounds_from(3, 5)));
  CHECK_FALSE(may(ps::equals(2), bounds_from(3, 5)));
  CHECK_FALSE(may(ps::one_of({1, 2, 6}), bounds_from(3, 5)));
  CHECK_FALSE(may(ps::less_than(3), bounds_from(3, 5)));
  CHECK(may(ps::at_most(3), bounds_from(3, 5)));
  CHECK_FALSE(may(ps::between(6, 8), bounds_from(3, 5)));
  CHECK_FALSE(may(ps::differs_from(3), bounds_from(3, 3)));
  CHECK_FALSE(may(ps::is_null(), bounds_from(3, 5)));
  CHECK(may(ps::is_null(), bounds_from(3, 5, 1)));
  CHECK_FALSE(may(ps::is_not_null(), bounds_from(3, 5, 10)));
  CHECK_FALSE(may(ps::equals(4), bounds_from(3, 5, 10)));
  CHECK(must(ps::between(3, 5), bounds_from(3, 5)));
  CHECK_FALSE(must(ps::between(3, 5), bounds_from(3, 5, 1)));  // a null is in no range
  CHECK_FALSE(must(ps::between(4, 5), bounds_from(3, 5)));
  CHECK(must(ps::differs_from(2), bounds_from(3, 5)));
  CHECK(must(ps::is_null(), bounds_from(3, 5, 10)));
  CHECK_FALSE(must(ps::is_null(), bounds_from(3, 5, 9)));
  CHECK(must(ps::is_not_null(), bounds_from(3, 5)));
  // of numbers of floating point there may be NaN besides
  CHECK(ps::detail::bound_test(ps::differs_from(3), real).may_hold(bounds_from(3.0, 3.0)));
  CHECK_FALSE(ps::detail::bound_test(ps::at_least(3), real).must_hold(bounds_from(3.0, 5.0)));
  CHECK(ps::detail::bound_test(ps::at_least(NAN), real).may_hold(bounds_from(3.0, 5.0)));
}

TEST_CASE("source/where: filters are spelled as they are written") {
  CHECK(ps::where<"label">(ps::one_of({3, -5}), ps::is_not_null()).spelled() ==
        "where<\"label\">(one_of({3, -5}), is_not_null())");
  CHECK(ps::where("s", ps::equals("a\"\n\x7f")).spelled() == "where<\"s\">(equals(\"a\\\"\\012\\177\"))");
  CHECK(ps::where("s", ps::between(0.5, 2.0), ps::differs_from(true)).spelled() ==
        "where<\"s\">(between(0.5, 2.0), differs_from(true))");
  CHECK(ps::columns<"a", "b">.names == std::vector<std::string>{"a", "b"});
}

TEST_CASE("source/where: what cannot be compared is an error") {
  const auto error_of = [](std::string_view format, const ps::column_test& test) -> std::string {
    ps::arrow_type type = ps::arrow_type::of_format(format);
    type.name = "c";
    try {
      (void)ps::detail::bound_test(test, type);
      return "";
    } catch (const ps::error& e) {
      return std::string(e.message());
    }
  };
  CHECK(error_of("l", ps::equals("x")) ==
        "the column 'c' is of type int64, which cannot be compared with \"x\"");
  CHECK(error_of("u", ps::equals(1)) == "the column 'c' is of type string, which cannot be compared with 1");
  CHECK(error_of("d:4,2", ps::equals(1)) ==
        "where compares no values of type decimal128(4,2), which the column 'c' has; only is_null and "
        "is_not_null apply to it");
  CHECK(error_of("d:4,2", ps::is_null()).empty());
  CHECK(error_of("b", ps::equals(true)).empty());
  CHECK(error_of("w:4", ps::equals("abcd")).empty());
}
