// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace penstock::inline v0_1::detail {

/// The first bytes of a field as one readable, quoted word for a message: `"12x
/// "`; longer ones end in "...".
[[nodiscard, gnu::cold]] std::string quoted(bytes_view bytes, std::size_t maximum = 20);
/// A number's text without surrounding white space and without one leading '+', which `std::from_chars`
/// does not accept.
[[nodiscard]] constexpr std::string_view trimmed_number(std::string_view text) noexcept {
  constexpr std::string_view space = " \t\n\v\f\r";
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(space) - first + 1);
  // "+-5" must not be read as -5
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

/// Throws `errc::format`: the bytes are not a number; `expected` names what should be there.
[[noreturn, gnu::cold]] void no_number(bytes_view bytes, std::string_view expected);
/// Throws `errc::format`: the number does not fit its type; `range` names the range that does.
[[noreturn, gnu::cold]] void number_out_of_range(bytes_view bytes, std::initializer_list<piece> range);

/// The number that the bytes are; `refuse()` throws for one that does not fit.
template <class T, class Refuse>
[[nodiscard]] T number_in(bytes_view bytes, std::string_view expected, Refuse&& refuse) {
  const std::string_view digits = trimmed_number(text_of(bytes));
  T value{};
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failure == std::errc{} && end == digits.data() + digits.size()) return value;
  if (failure == std::errc::result_out_of_range) refuse();
  no_number(bytes, expected);
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/number_text.ipp>
#endif
