// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// A JSON value, for tests that read what the library wrote. Strict (RFC 8259), except for surrogate
/// pairs in `\u`; throws std::runtime_error with the offset.
struct json {
  enum class kind { null, boolean, number, text, array, object };

  kind is = kind::null;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<json> items;
  std::map<std::string, json> members;

  [[nodiscard]] bool has(const std::string& name) const { return members.count(name) != 0; }
  [[nodiscard]] const json& operator[](const std::string& name) const {
    const auto found = members.find(name);
    if (found == members.end()) throw std::runtime_error("no member '" + name + "'");
    return found->second;
  }

  static json parse(std::string_view all) {
    parser p{all, 0};
    json value = p.value();
    p.space();
    if (p.at != all.size()) p.wrong("bytes after the value");
    return value;
  }

 private:
  struct parser {
    std::string_view all;
    std::size_t at;

    [[noreturn]] void wrong(const std::string& what) const {
      throw std::runtime_error(what + " at byte " + std::to_string(at));
    }
    void space() {
      while (at < all.size() && std::string_view(" \t\r\n").find(all[at]) != std::string_view::npos) ++at;
    }
    [[nodiscard]] char peek() const { return at < all.size() ? all[at] : '\0'; }
    void expect(std::string_view word) {
      if (all.substr(at, word.size()) != word) wrong("expected '" + std::string(word) + "'");
      at += word.size();
    }
    json value() {
      space();
      json v;
      switch (peek()) {
        case '{':
          return object();
        case '[':
          return array();
        case '"':
          v.is = kind::text;
          v.text = string();
          return v;
        case 't':
        case 'f':
          v.is = kind::boolean;
          v.truth = peek() == 't';
          expect(v.truth ? "true" : "false");
          return v;
        case 'n':
          expect("null");
          return v;
        default:
          return numeral();
      }
    }
    json object() {
      json v;
      v.is = kind::object;
      expect("{");
      space();
      for (bool first = true; peek() != '}'; first = false) {
        if (!first) expect(",");
        space();
        std::string name = string();
        space();
        expect(":");
        if (!v.members.emplace(std::move(name), value()).second) wrong("a member twice");
        space();
      }
      expect("}");
      return v;
    }
    json array() {
      json v;
      v.is = kind::array;
      expect("[");
      space();
      for (bool first = true; peek() != ']'; first = false) {
        if (!first) expect(",");
        v.items.push_back(value());
        space();
      }
      expect("]");
      return v;
    }
    /// The code point of the four digits after `\u`, in UTF-8.
    std::string code_point() {
      unsigned value = 0;
      for (int i = 0; i < 4; ++i, ++at) {
        const std::size_t digit = std::string_view("0123456789abcdef0123456789ABCDEF").find(peek());
        if (digit == std::string_view::npos || peek() == '\0') wrong("an escape that is none");
        value = value * 16 + static_cast<unsigned>(digit % 16);
      }
      const auto byte = [](unsigned bits) { return static_cast<char>(static_cast<unsigned char>(bits)); };
      if (value < 0x80) return {byte(value)};
      if (value < 0x800) return {byte(0xc0 | value >> 6), byte(0x80 | (value & 0x3f))};
      return {byte(0xe0 | value >> 12), byte(0x80 | (value >> 6 & 0x3f)), byte(0x80 | (value & 0x3f))};
    }
    std::string string() {
      std::string s;
      expect("\"");
      while (peek() != '"') {
        if (at >= all.size() || static_cast<unsigned char>(peek()) < 0x20) wrong("a text that does not end");
        if (peek() != '\\') {
          s += all[at++];
          continue;
        }
        ++at;
        const char c = peek();
        if (c == 'u') {
          ++at;
          s += code_point();
          continue;
        }
        const std::size_t place = std::string_view("\"\\/bfnrt").find(c);
        if (place == std::string_view::npos || c == '\0') wrong("an escape that is none");
        s += "\"\\/\b\f\n\r\t"[place];
        ++at;
      }
      ++at;
      return s;
    }
    [[nodiscard]] bool digits() {
      const std::size_t begin = at;
      while (peek() >= '0' && peek() <= '9') ++at;
      return at != begin;
    }
    json numeral() {
      json v;
      v.is = kind::number;
      const std::size_t begin = at;
      if (peek() == '-') ++at;
      const bool zero = peek() == '0';
      if (!digits() || (zero && all[begin] == '0' && at - begin > 1)) wrong("no value");
      if (peek() == '.') {
        ++at;
        if (!digits()) wrong("a number without digits");
      }
      if (peek() == 'e' || peek() == 'E') {
        ++at;
        if (peek() == '+' || peek() == '-') ++at;
        if (!digits()) wrong("a number without digits");
      }
      v.number = std::strtod(std::string(all.substr(begin, at - begin)).c_str(), nullptr);
      return v;
    }
  };
};

}  // namespace penstock_test
