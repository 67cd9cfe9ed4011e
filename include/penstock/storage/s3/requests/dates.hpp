// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/http_error.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::s3 {

/// Dates are whole seconds since 1970, so that no clock's resolution decides how far they reach.
using wall_time = std::chrono::sys_seconds;

/// `2026-11-23T20:15:00Z`, with a fraction of a second and an offset if there are any: RFC 3339, as
/// credentials give their end. A fraction is cut off.
[[nodiscard]] inline std::optional<wall_time> parse_rfc3339(std::string_view text) {
  constexpr std::size_t whole = 19;
  const auto number = [&text](std::size_t at) { return parse_digits(text.substr(at, 2)); };
  if (text.size() <= whole || text[4] != '-' || text[7] != '-' || text[13] != ':' || text[16] != ':' ||
      std::string_view("Tt ").find(text[10]) == std::string_view::npos)
    return std::nullopt;
  const auto local =
      time_of({parse_digits(text.substr(0, 4)), number(5), number(8), number(11), number(14), number(17)});
  text.remove_prefix(whole);
  if (text.front() == '.') {
    const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
    if (end == 1) return std::nullopt;
    text.remove_prefix(end);
  }
  if (text == "Z" || text == "z") return local;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hours = number(1), minutes = number(4);
  if (!local || !hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const std::chrono::minutes ahead(static_cast<int>(*hours * 60 + *minutes));
  return text[0] == '+' ? *local - ahead : *local + ahead;
}

/// `20261123T201500Z`, into `line`.
inline void write_amz_date(std::string& line, wall_time when) {
  const auto day = std::chrono::floor<std::chrono::days>(when);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(when - day);
  const auto digits = [&line](unsigned value, unsigned first) {
    for (unsigned at = first; at != 0; at /= 10) line += static_cast<char>('0' + value / at % 10);
  };
  line.clear();
  digits(static_cast<unsigned>(static_cast<int>(date.year())), 1000);
  digits(static_cast<unsigned>(date.month()), 10);
  digits(static_cast<unsigned>(date.day()), 10);
  line += 'T';
  digits(static_cast<unsigned>(clock.hours().count()), 10);
  digits(static_cast<unsigned>(clock.minutes().count()), 10);
  digits(static_cast<unsigned>(clock.seconds().count()), 10);
  line += 'Z';
}

}  // namespace penstock::inline v0_1::detail::s3
