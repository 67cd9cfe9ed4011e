// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/flat_json.hpp>

#include <charconv>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE std::string json_quoted(std::string_view s) {
  std::string quoted = "\"";
  while (!s.empty()) {
    const auto byte = static_cast<unsigned char>(s.front());
    const std::size_t length = detail::utf8_length(s);
    if (byte == '"' || byte == '\\')
      quoted.append({'\\', s.front()});
    else if (byte < 0x20 || byte == 0x7f)
      detail::append(quoted, {"\\u00", "0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
    else
      quoted += length == 0 ? std::string_view("\\ufffd") : s.substr(0, length);
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + '"';
}

PENSTOCK_INLINE std::string as_utf8(std::string_view s) {
  std::string clean;
  while (!s.empty()) {
    const std::size_t length = utf8_length(s);
    clean += length == 0 ? std::string_view("\xef\xbf\xbd") : s.substr(0, length);
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

PENSTOCK_INLINE std::size_t utf8_length(std::string_view s) noexcept {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3)
               ? 4
               : 0;
  return 0;
}

PENSTOCK_INLINE std::size_t json_reader::at() noexcept {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
    ++at_;
  return at_;
}
PENSTOCK_INLINE void json_reader::expect(char c) {
  if (!is_next(c)) fail_here(text({"'", c, "'"}));
  ++at_;
}
PENSTOCK_INLINE void json_reader::name(std::string_view wanted) {
  const std::size_t begin = at();
  if (string() != wanted) fail(text({"the name \"", wanted, '"'}), begin);
  expect(':');
}
PENSTOCK_INLINE bool json_reader::optional_name(std::string_view wanted) {
  const std::size_t begin = at();
  if (is_next('"') && string() == wanted) {
    expect(':');
    return true;
  }
  at_ = begin;
  return false;
}
PENSTOCK_INLINE bool json_reader::next_name(std::string_view wanted) {
  const std::size_t begin = at();
  if (begin == text_.size()) fail_here("','");
  if (!is_next(',')) return false;
  ++at_;
  if (at() == text_.size()) fail_here("a name");
  if (optional_name(wanted)) return true;
  at_ = begin;
  return false;
}
PENSTOCK_INLINE std::string json_reader::string() {
  expect('"');
  std::string value;
  while (at_ < text_.size() && text_[at_] != '"') append_character(value);
  if (at_ == text_.size()) fail_here("'\"'");
  ++at_;
  return value;
}
PENSTOCK_INLINE void json_reader::append_character(std::string& value) {
  constexpr std::string_view wanted = "a character, or \\\", \\\\, \\u00XX or \\ufffd";
  const std::string_view rest = text_.substr(at_);
  std::size_t length = utf8_length(rest);
  if (rest.front() == '\\') {
    const std::string_view code = rest.substr(1, 5);
    unsigned character = 0;
    if (code.starts_with('"') || code.starts_with('\\')) {
      value += code.front();
      length = 2;
    } else if (code == "ufffd") {
      value += "\xef\xbf\xbd";
      length = 6;
    } else if (code.size() == 5 && code.starts_with("u00") &&
               std::from_chars(code.data() + 3, code.data() + 5, character, 16).ptr == code.data() + 5 &&
               character < 0x80) {
      value += static_cast<char>(character);
      length = 6;
    } else {
      cut_ = code.size() < 5;
      fail(wanted, at_);
    }
  } else if (length == 0 || static_cast<unsigned char>(rest.front()) < 0x20) {
    const auto first = static_cast<unsigned char>(rest.front());
    const std::size_t whole = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    cut_ = rest.size() < whole;
    for (const char c : rest.substr(1)) cut_ = cut_ && (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    fail(wanted, at_);
  } else {
    value += rest.substr(0, length);
  }
  at_ += length;
}
PENSTOCK_INLINE std::uint64_t json_reader::number() {
  std::uint64_t value = 0;
  const char* const begin = text_.data() + at();
  const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (problem != std::errc()) fail_here("a number of 64 bits");
  at_ += static_cast<std::size_t>(end - begin);
  if (at_ == text_.size()) fail_here("what is behind a number");
  return value;
}
PENSTOCK_INLINE std::uint64_t json_reader::quoted_number() {
  expect('"');
  std::uint64_t value = 0;
  const char* const begin = text_.data() + at_;
  const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (problem != std::errc() || end == text_.data() + text_.size() || *end != '"')
    fail("a number of 64 bits as a string", at_);
  at_ += static_cast<std::size_t>(end - begin) + 1;
  return value;
}
PENSTOCK_INLINE void json_reader::end(std::string_view called) {
  if (at() != text_.size()) fail(called, at_);
}
PENSTOCK_INLINE void json_reader::fail_here(std::string_view wanted) {
  cut_ = at() == text_.size();
  fail(wanted, at_);
}
PENSTOCK_INLINE void json_reader::fail(std::string_view wanted, std::size_t offset) const {
  throw error(of_.code, {of_.what, ": expected ", wanted}).in_stage(of_.stage).at_offset(offset);
}

}  // namespace detail

}  // namespace penstock::inline v0_1
