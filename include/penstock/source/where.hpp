// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/name.hpp>
#include <penstock/order/subset.hpp>

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// A value to compare a column with: a whole number, another number, a truth value, which counts as 0 or 1,
/// or a text.
class column_constant {
 public:
  enum class kind : std::uint8_t { whole, real, truth, text };

  template <class T>
    requires std::is_arithmetic_v<T>
  column_constant(T value) noexcept {  // NOLINT: equals(3)
    if constexpr (std::floating_point<T>) {
      kind_ = kind::real;
      real_ = static_cast<double>(value);
    } else {
      if constexpr (std::same_as<T, bool>) kind_ = kind::truth;
      bits_ = static_cast<std::uint64_t>(value);
      negative_ = value < T{};
    }
  }
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  column_constant(const T& value)  // NOLINT: equals("cat")
      : kind_(kind::text), text_(static_cast<std::string_view>(value)) {}

  [[nodiscard]] kind what() const noexcept { return kind_; }
  /// A whole number's sign, and its bits as two's complement.
  [[nodiscard]] bool negative() const noexcept { return negative_; }
  [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
  /// A number as a double.
  [[nodiscard]] double real() const noexcept {
    if (kind_ == kind::real) return real_;
    return negative_ ? static_cast<double>(static_cast<std::int64_t>(bits_)) : static_cast<double>(bits_);
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// As it is written in C++.
  [[nodiscard]] std::string spelled() const;

 private:
  kind kind_ = kind::whole;
  bool negative_ = false;
  std::uint64_t bits_ = 0;
  double real_ = 0;
  std::string text_;
};

/// What is asked of a column's values: a predicate of `subset`, `is_null()` or `is_not_null()`. No comparison
/// is true of a null.
class column_test {
 public:
  enum class kind : std::uint8_t {
    equal,
    differ,
    less,
    at_most,
    greater,
    at_least,
    between,
    one_of,
    null,
    not_null
  };

  column_test(kind what, std::vector<column_constant> values) : kind_(what), values_(std::move(values)) {}
  template <class Operand>
  column_test(const one_of_these<Operand>& given)  // NOLINT: where<"label">(equals(3))
      : column_test(given.wanted().size() == 1 ? kind::equal : kind::one_of,
                    {given.wanted().begin(), given.wanted().end()}) {}
  template <class Low, class High>
  column_test(const between_these<Low, High>& given)  // NOLINT
      : column_test(kind::between, {given.low(), given.high()}) {}
  template <comparison How, class Operand>
  column_test(const compared_with<How, Operand>& given)  // NOLINT
      : column_test(static_cast<kind>(static_cast<std::uint8_t>(How) + 1), {given.other()}) {}

  [[nodiscard]] kind what() const noexcept { return kind_; }
  [[nodiscard]] const std::vector<column_constant>& values() const noexcept { return values_; }
  [[nodiscard]] std::string spelled() const;

 private:
  kind kind_;
  std::vector<column_constant> values_;
};

/// Tests for `where` that are no comparisons.
[[nodiscard]] inline column_test is_null() { return {column_test::kind::null, {}}; }
[[nodiscard]] inline column_test is_not_null() { return {column_test::kind::not_null, {}}; }

/// A column and tests that must all be true of a row's value: the result of `where`.
struct column_filter {
  std::string column;
  std::vector<column_test> tests;

  [[nodiscard]] std::string spelled() const;
};

/// Rows of which all tests are true, behind a source that can choose them: `parquet`.
///
/// `parquet("fares") | where<"year">(between(2021, 2023)) | where<"city">(one_of({"Oslo", "Lima"}))`.
///
/// In: the column's name, and one or more of `equals`, `one_of`, `between`, `differs_from`, `less_than`,
/// `at_most`, `greater_than`, `at_least`, `is_null` and `is_not_null`. Several `where` must all be true. They
/// compare as in `subset`; dates, times and timestamps are the whole numbers that the column counts. A column
/// that a file does not have is null there. What files claim of their values, in statistics, indexes of pages
/// and Bloom filters, spares reading them where it can be true, and decides nothing where it cannot.
/// Errors: errc::argument, when the plan is made, for a column that is not there, and for a constant that
/// cannot be compared with it: a text with a number, or anything with a list or a decimal; and for a name
/// that two columns have.
template <fixed_string Column, class... Tests>
  requires(sizeof...(Tests) != 0 && (std::convertible_to<Tests, column_test> && ...))
[[nodiscard]] column_filter where(Tests... tests) {
  return {std::string(name_of<Column>::value), {column_test(std::move(tests))...}};
}
/// The same with a name that is known at run time.
template <class... Tests>
  requires(sizeof...(Tests) != 0 && (std::convertible_to<Tests, column_test> && ...))
[[nodiscard]] column_filter where(std::string_view column, Tests... tests) {
  return {std::string(column), {column_test(std::move(tests))...}};
}

/// Some columns of a source: the result of `columns`.
struct column_list {
  std::vector<std::string> names;
};

/// The columns that are used, behind a source that has more: `parquet("photos.parquet") | columns<"image",
/// "label">`. Only needed where the stages do not name the fields that they use, such as a function that gets
/// the whole row.
template <fixed_string... Names>
  requires(sizeof...(Names) != 0)
inline const column_list columns{{std::string(name_of<Names>::value)...}};

namespace detail {

/// The smallest and the largest value of some rows, as far as a file says, and how many are null.
struct column_bounds {
  bool some = false;  // whether there are bounds
  column_constant low = 0, high = 0;
  std::optional<std::uint64_t> nulls{};  // if it is known
  std::uint64_t rows = 0;
};

/// -1, 0 or 1 as the first one is less, equal or greater; 2 if one is NaN. Both are numbers, or both texts.
[[nodiscard]] int compare_constants(const column_constant& a, const column_constant& b) noexcept;

/// What the numbers of dictionaries stand for.
[[nodiscard]] const arrow_type& type_of_values(const arrow_type& type);

/// A test for the values of one type.
class bound_test {
  using kind = column_test::kind;

 public:
  /// Throws errc::argument if the values cannot be compared with the constants.
  bound_test(const column_test& test, const arrow_type& given);

  /// Whether it is true of a value.
  [[nodiscard]] bool holds(const arrow_cell& cell) const;
  /// Whether it may be true of a value of some rows.
  [[nodiscard]] bool may_hold(const column_bounds& within) const;
  /// Whether it is true of all values of some rows, as far as their bounds say.
  [[nodiscard]] bool must_hold(const column_bounds& within) const;
  /// Values of which one must be there if the test is to be true of any row; empty: there are none such.
  [[nodiscard]] const std::vector<column_constant>& wanted() const noexcept { return wanted_; }

 private:
  [[nodiscard]] static bool is_upper(kind what) noexcept {
    return what == kind::less || what == kind::at_most;
  }
  /// Whether `holds(comparison, constant)` is true: of both bounds of `between`, of one of other constants.
  template <class Holds>
  [[nodiscard]] bool any_of_test(const Holds& holds) const;
  [[nodiscard]] int order_of(const arrow_cell& cell, const column_constant& value) const;

  column_test test_;
  std::vector<column_constant> wanted_;
  bool real_;
};

/// All tests of a filter, for the type of its column.
struct bound_filter {
  std::vector<bound_test> tests;

  bound_filter(const column_filter& filter, const arrow_type& type) {
    for (const column_test& one : filter.tests) tests.emplace_back(one, type);
  }

  [[nodiscard]] bool holds(const arrow_cell& cell) const {
    return std::ranges::all_of(tests, [&](const bound_test& one) { return one.holds(cell); });
  }
  [[nodiscard]] bool may_hold(const column_bounds& within) const {
    return std::ranges::all_of(tests, [&](const bound_test& one) { return one.may_hold(within); });
  }
  /// Whether all values of some rows pass, whatever they are.
  [[nodiscard]] bool must_hold(const column_bounds& within) const {
    return std::ranges::all_of(tests, [&](const bound_test& one) { return one.must_hold(within); });
  }
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/where.ipp>
#endif
