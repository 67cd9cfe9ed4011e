// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1::detail {

/// A piece of a message: a text, a character or a number.
class piece {
 public:
  constexpr piece(std::string_view text) noexcept : data_(text.data()), value_(text.size()) {}
  constexpr piece(const char* text) noexcept : piece(std::string_view(text)) {}
  template <std::same_as<char> C>  // no other type may convert to char
  constexpr piece(C character) noexcept
      : value_(static_cast<unsigned char>(character)), kind_(kind::character) {}
  template <std::integral T>
    requires(!std::is_same_v<T, bool> && !std::is_same_v<T, char>)
  constexpr piece(T number) noexcept : value_(static_cast<std::uint64_t>(number)), kind_(kind::number) {
    if constexpr (std::is_signed_v<T>) {
      if (number < 0) {
        kind_ = kind::negative;
        value_ = 0 - value_;
      }
    }
  }
  piece(const std::string& text) noexcept : piece(std::string_view(text)) {}

  void append_to(std::string& line) const;

 private:
  enum class kind : unsigned char { text, character, number, negative };
  const char* data_ = nullptr;
  std::uint64_t value_;
  kind kind_ = kind::text;
};

/// Joins pieces. A single function for all messages: each `+` of strings would cost half a kilobyte of code
/// and as much compile time.
void append(std::string& line, std::initializer_list<piece> pieces);
[[nodiscard]] std::string text(std::initializer_list<piece> pieces);
/// The shortest decimal that reads back as this number.
[[nodiscard]] std::string number_text(double number);
/// A list as text: `head`, the items separated by `between`, and `tail`.
[[nodiscard]] std::string list_text(std::string_view head, std::initializer_list<std::string_view> items,
                                    std::string_view between, std::string_view tail);

/// The name of an enumerator: the names of all of them, in the order of their values from 0.
[[nodiscard]] constexpr std::string_view enum_name(std::initializer_list<std::string_view> names,
                                                   auto value) noexcept {
  const auto i = static_cast<std::size_t>(value);
  return i < names.size() ? names.begin()[i] : "unknown";
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/core/message.ipp>
#endif
