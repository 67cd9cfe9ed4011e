// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/json_text.hpp>

#include <penstock/base/flat_json.hpp>
#include <penstock/codec/layouts/number_text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string_view json_text(bytes_view bytes, std::uint64_t limit) {
  if (bytes.size() > limit)
    throw error(errc::limit, {"the JSON has ", bytes.size(), " bytes, and the limit is ", limit,
                              "; raise it with .limit = ..."});
  std::string_view text = bytes.empty() ? std::string_view("") : text_of(bytes);  // never a null pointer
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

namespace json_words {

struct word {
  std::string_view text, zero;  // of the same length
  double value;
};

inline constexpr std::array<word, 3> all{
    {{"NaN", "0.0", std::numeric_limits<double>::quiet_NaN()},
     {"Infinity", "0.000000", std::numeric_limits<double>::infinity()},
     {"-Infinity", "-0.000000", -std::numeric_limits<double>::infinity()}}};

// The value of a hexadecimal digit; 16 if it is none.
inline std::uint32_t hex1(char c) noexcept {
  const char lower = static_cast<char>(c | 32);
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  return lower >= 'a' && lower <= 'f' ? static_cast<std::uint32_t>(lower - 'a' + 10) : 16;
}

// The value of four hexadecimal digits; 2^16 if these are none.
inline std::uint32_t hex4(std::string_view digits) noexcept {
  std::uint32_t value = 0;
  if (digits.size() < 4) return 0x10000;
  for (const char c : digits.substr(0, 4)) {
    if (hex1(c) == 16) return 0x10000;
    value = value * 16 + hex1(c);
  }
  return value;
}

inline bool is_high(std::uint32_t unit) noexcept { return unit >= 0xd800 && unit < 0xdc00; }

inline bool is_low(std::uint32_t unit) noexcept { return unit >= 0xdc00 && unit < 0xe000; }

inline bool is_digit(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// Whether the escape at `at`, "\uXXXX", is the first half of a surrogate pair whose other half follows.
inline bool is_pair(std::string_view text, std::size_t at, std::uint32_t high) noexcept {
  return is_high(high) && text.substr(at + 6, 2) == "\\u" &&
         is_low(hex4(text.substr(std::min(at + 8, text.size()))));
}

}  // namespace json_words

// Goes through a text, and stops where it is not JSON.
class json_walk {
 public:
  explicit json_walk(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] std::size_t fault() {
    do {
      blanks();
      if (!value()) return at_;
      while (!open_.empty()) {
        blanks();
        if (is(open_.back())) {
          open_.pop_back();
        } else if (!is(',') || (open_.back() == '}' && !(blanks(), name()))) {
          return at_;
        } else {
          break;
        }
      }
    } while (!open_.empty());
    blanks();
    return at_ == text_.size() ? std::string_view::npos : at_;
  }

 private:
  bool is(char c) noexcept { return at_ < text_.size() && text_[at_] == c && (++at_, true); }
  void blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool word(std::string_view wanted) noexcept {
    for (const char c : wanted)
      if (!is(c)) return false;
    return true;
  }
  // The beginning of a list or an object, or all of another value.
  bool value() {
    for (;;) {
      if (is('[')) {
        open_ += ']';
        blanks();
        if (at_ < text_.size() && text_[at_] == ']') return true;
      } else if (is('{')) {
        open_ += '}';
        blanks();
        if (at_ < text_.size() && text_[at_] == '}') return true;
        if (!name()) return false;
      } else {
        break;
      }
      blanks();
    }
    if (at_ == text_.size()) return false;
    switch (text_[at_]) {
      case '"':
        return string();
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      case 'N':
        return word("NaN");
      case 'I':
        return word("Infinity");
      default:
        return number();
    }
  }
  // A name and its colon.
  bool name() {
    if (!string()) return false;
    blanks();
    if (!is(':')) return false;
    blanks();
    return true;
  }
  bool string() {
    if (!is('"')) return false;
    while (!is('"')) {
      if (at_ == text_.size()) return false;
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '\\') {
        ++at_;
        if (at_ == text_.size()) return false;
        if (is('u')) {
          for (int i = 0; i < 4; ++i, ++at_)
            if (at_ == text_.size() || json_words::hex1(text_[at_]) == 16) return false;
        } else {
          if (std::string_view("\"\\/bfnrt").find(text_[at_]) == std::string_view::npos) return false;
          ++at_;
        }
      } else {
        const std::size_t length = c < 0x20 ? 0 : utf8_length(text_.substr(at_));
        if (length == 0) return false;
        at_ += length;
      }
    }
    return true;
  }
  bool digits() noexcept {
    const std::size_t before = at_;
    while (json_words::is_digit(text_, at_)) ++at_;
    return at_ != before;
  }
  bool number() {
    if (is('-') && at_ < text_.size() && text_[at_] == 'I') return word("Infinity");
    if (!is('0') && !digits()) return false;
    if (is('.') && !digits()) return false;
    if (is('e') || is('E')) {
      if (!is('+')) (void)is('-');
      return digits();
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string open_;  // how the lists and objects around end
};

PENSTOCK_INLINE std::size_t json_fault(std::string_view text) { return json_walk(text).fault(); }

PENSTOCK_INLINE void json_malformed(std::string_view text, std::uint64_t offset) {
  offset = std::min<std::uint64_t>(offset, text.size());
  if (offset == text.size()) throw error(errc::format, "the JSON ends too early").at_offset(offset);
  throw error(errc::format, {"this is not JSON: it goes wrong at ",
                             quoted(bytes_of(text.substr(detail::to_size(offset))), 12)})
      .at_offset(offset);
}

PENSTOCK_INLINE std::string_view json_unescape(char* text, std::size_t size) noexcept {
  const std::string_view all(text, size);
  std::size_t from = all.find('\\');
  if (from == all.npos) return all;
  char* to = text + from;
  const auto put = [&to](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
  const auto put_character = [&](std::uint32_t c) {
    if (c < 0x80) return put(c);
    if (c < 0x800) {
      put(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        put(0xe0 | c >> 12);
      } else {
        put(0xf0 | c >> 18);
        put(0x80 | (c >> 12 & 63));
      }
      put(0x80 | (c >> 6 & 63));
    }
    put(0x80 | (c & 63));
  };
  while (from < size) {
    // text[from] is a backslash; what is written never goes beyond what was read
    if (from + 1 == size) return {};
    const char kind = text[from + 1];
    if (kind == 'u') {
      std::uint32_t c = json_words::hex4(all.substr(from + 2));
      if (c == 0x10000) return {};
      if (json_words::is_pair(all, from, c)) {
        c = 0x10000 + ((c & 0x3ff) << 10 | (json_words::hex4(all.substr(from + 8)) & 0x3ff));
        from += 6;
      } else if (json_words::is_high(c) || json_words::is_low(c)) {
        c = 0xfffd;
      }
      put_character(c);
      from += 6;
    } else {
      constexpr std::string_view escapes = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
      const std::size_t which = escapes.find(kind);
      if (which == escapes.npos) return {};
      *to++ = meant[which];
      from += 2;
    }
    const std::size_t next = std::min(all.find('\\', from), size);
    std::memmove(to, text + from, next - from);
    to += next - from;
    from = next;
  }
  return {text, static_cast<std::size_t>(to - text)};
}

PENSTOCK_INLINE json_extras check_json_depth(std::string_view text, std::uint64_t depth) {
  json_extras found;
  std::uint64_t now = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
        if (text.substr(std::min(i, text.size()), 1) == "u")
          found.surrogates |= (json_words::hex4(text.substr(i + 1)) & 0xf800) == 0xd800;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++now > depth)
        throw error(errc::limit,
                    {"the JSON is nested more than ", depth, " deep; raise the limit with .depth = ..."})
            .at_offset(i);
    } else if ((c == ']' || c == '}') && now != 0) {
      --now;
    } else if (c == 'N' || c == 'I') {
      found.words = true;
    }
  }
  return found;
}

PENSTOCK_INLINE std::vector<std::pair<std::size_t, double>> to_plain_json(std::string& text) {
  std::vector<std::pair<std::size_t, double>> special;
  std::size_t numbers = 0;
  const std::string_view all = text;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"';) {
        if (text[i] != '\\') {
          ++i;
          continue;
        }
        if (all.substr(i, 2) != "\\u") {
          i += 2;
          continue;
        }
        const std::uint32_t unit = json_words::hex4(all.substr(std::min(i + 2, all.size())));
        const bool pair = json_words::is_pair(all, i, unit);
        if (!pair && (json_words::is_high(unit) || json_words::is_low(unit))) text.replace(i, 6, "\\ufffd");
        i += pair ? 12 : 2;
      }
      ++i;
      continue;
    }
    // only a whole token is a word: 1NaN is not JSON, and must not become 10.0
    const auto* const word =
        std::find_if(json_words::all.begin(), json_words::all.end(), [&](const json_words::word& one) {
          constexpr std::string_view before = " \t\r\n[:,", behind = " \t\r\n]},";
          const std::size_t end = i + one.text.size();
          return all.substr(i).starts_with(one.text) && (i == 0 || before.find(all[i - 1]) != all.npos) &&
                 (end == all.size() || behind.find(all[end]) != all.npos);
        });
    if (word != json_words::all.end()) {
      special.emplace_back(numbers++, word->value);
      text.replace(i, word->text.size(), word->zero);
      i += word->text.size();
    } else if (text[i] == '-' || json_words::is_digit(all, i)) {
      ++numbers;
      i = std::min(all.find_first_not_of("0123456789+-.eE", i), all.size());
    } else {
      ++i;
    }
  }
  return special;
}

}  // namespace penstock::inline v0_1::detail
