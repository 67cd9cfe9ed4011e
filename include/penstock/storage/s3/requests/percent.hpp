// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/hmac.h>)
#error "penstock/storage/s3/requests/percent.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/cpp20.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1::detail::s3 {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
[[nodiscard]] constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }
[[nodiscard]] constexpr char to_lower(char c) noexcept {
  return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] constexpr bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (to_lower(a[i]) != to_lower(b[i])) return false;
  return true;
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
  for (const char c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return true;
}

/// Appends `chars` percent-encoded as AWS signs it: all but letters, digits and `-._~` is %XX in capitals; a
/// slash stays in paths.
inline void append_encoded(std::string& line, std::string_view chars, bool keeps_slashes = false) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  for (const char c : chars) {
    if (is_digit(c) || is_lower(c) || is_upper(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
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

[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  c = to_lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
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

}  // namespace penstock::inline v0_1::detail::s3
