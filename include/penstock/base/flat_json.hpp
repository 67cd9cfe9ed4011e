// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// JSON as far as this library writes it: states, ledgers, timelines. One function quotes, one class reads.
namespace penstock::inline v0_1 {
namespace detail {

/// A text as a string of JSON. What is no UTF-8 becomes U+FFFD, a byte at a time: names come from foreign
/// bytes.
/// Source: RFC 8259, section 7; the Unicode Standard, table 3-7.
[[nodiscard, gnu::cold]] std::string json_quoted(std::string_view s);

/// A text with U+FFFD for each byte that is no UTF-8: what a reader gets back of `json_quoted`.
[[nodiscard, gnu::cold]] std::string as_utf8(std::string_view s);

/// How many bytes at the beginning of a text are one character of UTF-8; 0 where they are none.
[[nodiscard]] std::size_t utf8_length(std::string_view s) noexcept;

/// A strict reader of JSON whose names come in a known order, blanks between tokens aside. It reads what this
/// library writes: of escapes \", \\, \u00XX for characters below 128, and \ufffd.
///
/// All else is an error with its offset: "<what>: expected <that>".
class json_reader {
 public:
  /// How errors call what is read; `stage` may be empty.
  struct subject {
    errc code;
    std::string_view what, stage;
  };
  json_reader(std::string_view text, subject of) noexcept : text_(text), of_(of) {}

  /// Where the next token begins.
  [[nodiscard]] std::size_t at() noexcept;
  /// Whether the text ended where more was expected: it may have been cut.
  [[nodiscard]] bool was_cut() const noexcept { return cut_; }

  void expect(char c);
  /// A name and the colon behind it.
  void name(std::string_view wanted);
  /// Reads the name and its colon if that name comes next; else reads nothing.
  [[nodiscard]] bool optional_name(std::string_view wanted);
  /// Reads a comma, the name and its colon if they come next; else reads nothing.
  [[nodiscard]] bool next_name(std::string_view wanted);
  [[nodiscard]] std::string string();
  [[nodiscard]] std::uint64_t number();
  /// A number that is written as a string, so that no reader rounds it.
  [[nodiscard]] std::uint64_t quoted_number();
  /// An array, whose elements `read_one` reads.
  template <class Read>
  void list(Read read_one) {
    expect('[');
    if (!is_next(']')) {
      read_one();
      while (!is_next(']')) {
        expect(',');
        read_one();
      }
    }
    expect(']');
  }
  void end(std::string_view called);
  [[noreturn]] void fail(std::string_view wanted, std::size_t offset) const;

 private:
  [[nodiscard]] bool is_next(char c) noexcept { return at() < text_.size() && text_[at_] == c; }
  /// Fails at the place of the next character; where there is none, the text was cut.
  [[noreturn]] void fail_here(std::string_view wanted);
  void append_character(std::string& value);

  std::string_view text_;
  subject of_;
  std::size_t at_ = 0;
  bool cut_ = false;
};

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/base/flat_json.ipp>
#endif
