// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/where.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string column_constant::spelled() const {
  switch (kind_) {
    case kind::truth:
      return bits_ != 0 ? "true" : "false";
    case kind::whole:
      return negative_ ? std::to_string(static_cast<std::int64_t>(bits_)) : std::to_string(bits_);
    case kind::real: {
      std::string made = detail::number_text(real_);
      if (made.find_first_of(".en") == std::string::npos) made += ".0";
      return made;
    }
    default:
      break;
  }
  std::string made = "\"";
  for (const char c : text_) {
    const auto value = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      made += {'\\', c};
    } else if (value >= 32 && value != 127) {
      made += c;
    } else {
      made += '\\';
      for (const int shift : {6, 3, 0}) made += static_cast<char>('0' + (value >> shift) % 8);
    }
  }
  return made + '"';
}

PENSTOCK_INLINE std::string column_test::spelled() const {
  constexpr std::string_view names[] = {"equals",   "differs_from", "less_than", "at_most", "greater_than",
                                        "at_least", "between",      "one_of",    "is_null", "is_not_null"};
  std::string made(names[static_cast<std::size_t>(kind_)]);
  made += kind_ == kind::one_of ? "({" : "(";
  for (std::size_t i = 0; i < values_.size(); ++i)
    detail::append(made, {i == 0 ? "" : ", ", values_[i].spelled()});
  return made + (kind_ == kind::one_of ? "})" : ")");
}

PENSTOCK_INLINE std::string column_filter::spelled() const {
  std::string made = detail::text({"where<\"", column, "\">("});
  for (std::size_t i = 0; i < tests.size(); ++i)
    detail::append(made, {i == 0 ? "" : ", ", tests[i].spelled()});
  return made + ')';
}

namespace detail {

PENSTOCK_INLINE int order_of_numbers(bool a_negative, std::uint64_t a, bool b_negative,
                                     std::uint64_t b) noexcept {
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;  // two's complement of one sign is in order
}

PENSTOCK_INLINE int order_of_reals(double a, double b) noexcept {
  return a < b ? -1 : a > b ? 1 : a == b ? 0 : 2;
}

PENSTOCK_INLINE int order_of_texts(std::string_view a, std::string_view b) noexcept {
  const int order = a.compare(b);  // of unsigned bytes
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

PENSTOCK_INLINE int compare_constants(const column_constant& a, const column_constant& b) noexcept {
  using kind = column_constant::kind;
  if (a.what() == kind::text) return order_of_texts(a.text(), b.text());
  if (a.what() == kind::real || b.what() == kind::real) return order_of_reals(a.real(), b.real());
  return order_of_numbers(a.negative(), a.bits(), b.negative(), b.bits());
}

PENSTOCK_INLINE const arrow_type& type_of_values(const arrow_type& type) {
  return type.dictionary.empty() ? type : type_of_values(type.dictionary.front());
}

/// Whether a comparison is true if the value is less, equal or greater than the constant.
PENSTOCK_INLINE bool is_such_order(column_test::kind what, int order) noexcept {
  using kind = column_test::kind;
  if (what == kind::differ) return order != 0;
  if (order == 0) return what != kind::less && what != kind::greater;
  return order == (what == kind::less || what == kind::at_most       ? -1
                   : what == kind::greater || what == kind::at_least ? 1
                                                                     : 0);
}

PENSTOCK_INLINE bound_test::bound_test(const column_test& test, const arrow_type& given)
    : test_(test), real_(false) {
  const arrow_type& type = type_of_values(given);
  const bool text = type.is_bytes() || (type.layout == arrow_layout::fixed && type.format.starts_with("w:"));
  const bool number = type.layout == arrow_layout::bits || type.number != arrow_number::none;
  real_ = detail::is_real(type.number);
  for (const column_constant& one : test.values()) {
    if (!text && !number)
      throw error(errc::argument, {"where compares no values of type ", type.text(), ", which the column '",
                                   given.name, "' has; only is_null and is_not_null apply to it"});
    if (text != (one.what() == column_constant::kind::text))
      throw error(errc::argument, {"the column '", given.name, "' is of type ", given.text(),
                                   ", which cannot be compared with ", one.spelled()});
  }
  if (test.what() == kind::equal || test.what() == kind::one_of) wanted_ = test_.values();
}

PENSTOCK_INLINE bool bound_test::holds(const arrow_cell& cell) const {
  if (test_.what() == kind::null) return cell.is_null();
  if (cell.is_null()) return false;
  if (test_.what() == kind::not_null) return true;
  return any_of_test(
      [&](kind what, const column_constant& value) { return is_such_order(what, order_of(cell, value)); });
}

PENSTOCK_INLINE bool bound_test::may_hold(const column_bounds& within) const {
  const bool all_null = within.nulls && *within.nulls == within.rows;
  if (test_.what() == kind::null) return !within.nulls || *within.nulls != 0;
  if (all_null) return false;
  if (test_.what() == kind::not_null || !within.some) return true;
  return any_of_test([&](kind what, const column_constant& value) {
    const int low = compare_constants(within.low, value), high = compare_constants(within.high, value);
    // A NaN that the constant is, or that a bound should not be, says nothing.
    if (low == 2 || high == 2) return true;
    if (what == kind::differ) return real_ || low != 0 || high != 0;
    if (what == kind::equal || what == kind::one_of) return low <= 0 && high >= 0;
    return is_such_order(what, is_upper(what) ? low : high);
  });
}

PENSTOCK_INLINE bool bound_test::must_hold(const column_bounds& within) const {
  const bool no_nulls = within.nulls && *within.nulls == 0;
  if (test_.what() == kind::null) return within.nulls && *within.nulls == within.rows;
  if (test_.what() == kind::not_null) return no_nulls;
  // Bounds say nothing of NaN, and may be shortened texts.
  if (!no_nulls || !within.some || real_) return false;
  return any_of_test([&](kind what, const column_constant& value) {
    const int low = compare_constants(within.low, value), high = compare_constants(within.high, value);
    if (what == kind::differ) return low == 1 || high == -1;
    if (what == kind::equal || what == kind::one_of) return low == 0 && high == 0;
    return is_such_order(what, is_upper(what) ? high : low);
  });
}

template <class Holds>
bool bound_test::any_of_test(const Holds& holds) const {
  const std::vector<column_constant>& values = test_.values();
  if (test_.what() == kind::between)
    return holds(kind::at_least, values[0]) && holds(kind::at_most, values[1]);
  return std::ranges::any_of(values, [&](const column_constant& one) { return holds(test_.what(), one); });
}

PENSTOCK_INLINE int bound_test::order_of(const arrow_cell& cell, const column_constant& value) const {
  const auto whole = [&]<class T>(T number) {
    if (value.what() == column_constant::kind::real)
      return order_of_reals(static_cast<double>(number), value.real());
    return order_of_numbers(number < T{}, static_cast<std::uint64_t>(number), value.negative(), value.bits());
  };
  if (detail::is_real(cell.type().number))
    return order_of_reals(detail::real_arrow_number(cell, sizeof(double)), value.real());
  return detail::with_whole_number(
      cell.type().number, [&]<class T>(T) { return whole(cell.number<T>()); },
      [&] {
        if (cell.type().layout == arrow_layout::bits) return whole(static_cast<int>(cell.bit()));
        return order_of_texts(text_of(cell.bytes()), value.text());
      });
}

}  // namespace detail

}  // namespace penstock::inline v0_1
