// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "penstock/storage/s3/requests/http_call.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/cpp20.hpp>
#include <penstock/storage/http_error.hpp>
#include <penstock/storage/url.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
[[nodiscard]] constexpr bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

/// What is left of a text without the spaces and tabs around it.
[[nodiscard]] constexpr std::string_view trimmed(std::string_view line) noexcept {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

/// Whether a text can be a header's value: it has no control characters, so that it cannot become two
/// headers.
[[nodiscard]] constexpr bool fits_into_header(std::string_view line) noexcept {
  return std::ranges::none_of(line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// Appends `chars` percent-encoded as AWS signs it: all but letters, digits and `-._~` is %XX in capitals; a
/// slash stays in paths.
inline void append_encoded(std::string& line, std::string_view chars, bool keeps_slashes = false) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : chars) {
    if (is_digit(c) || is_letter(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (keeps_slashes && c == '/')) {
      line += c;
    } else {
      const auto value = static_cast<unsigned char>(c);
      line += '%';
      line += digits[value >> 4];
      line += digits[value & 15];
    }
  }
}
[[nodiscard]] inline std::string percent_encoded(std::string_view chars, bool keeps_slashes = false) {
  std::string line;
  append_encoded(line, chars, keeps_slashes);
  return line;
}

/// The names of a list that was asked for with `encoding-type=url`: as in forms, `+` is a space. Nothing if
/// a `%` has no two digits after it. Source: botocore, compat.py, unquote_str.
[[nodiscard]] inline std::optional<std::string> form_decoded(std::string_view chars) {
  std::string line;
  line.reserve(chars.size());
  for (std::size_t i = 0; i < chars.size(); ++i) {
    if (chars[i] != '%') {
      line += chars[i] == '+' ? ' ' : chars[i];
      continue;
    }
    const int high = i + 2 < chars.size() ? hex_value(chars[i + 1]) : -1;
    const int low = i + 2 < chars.size() ? hex_value(chars[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    line += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return line;
}

/// A header of a request or an answer, or a parameter of a query, which is not encoded.
struct name_value {
  std::string name;
  std::string value;
};

/// The query of a URL, or a form.
[[nodiscard]] inline std::string query_of(std::span<const name_value> items) {
  std::string line;
  for (const name_value& one : items) {
    if (!line.empty()) line += '&';
    append_encoded(line, one.name);
    line += '=';
    append_encoded(line, one.value);
  }
  return line;
}

/// An answer as a whole. It may hold credentials: nothing prints it.
struct http_answer {
  int status = 0;
  std::vector<name_value> headers;
  std::string body;
};

/// The first header of that name; names have no case.
[[nodiscard]] inline std::optional<std::string_view> header_of(std::span<const name_value> headers,
                                                               std::string_view name) noexcept {
  for (const name_value& one : headers)
    if (equal_but_for_case(one.name, name)) return trimmed(one.value);
  return std::nullopt;
}

/// A request as a whole. It may hold tokens: nothing prints it.
struct http_request {
  std::string method = "GET";
  url to;
  std::vector<name_value> headers;
  std::string body;
  /// When the answer must have come, from the call on; then `send` throws errc::io.
  std::chrono::milliseconds deadline{1000};
  /// The answer is cut off as errc::io if its body is longer.
  std::size_t max_body_size = std::size_t{1} << 20;
};

/// Who sends small requests for whoever needs credentials or a list, and waits for the answer. `send` follows
/// no redirect, throws errc::io when there is no answer, and may be called by several threads.
struct http_call {
  void* self = nullptr;
  http_answer (*send)(void* self, const http_request& request) = nullptr;

  [[nodiscard]] http_answer operator()(const http_request& request) const { return send(self, request); }
};

}  // namespace penstock::inline v0_1::detail::s3
