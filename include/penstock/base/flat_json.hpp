// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

/// The subset of JSON that this library writes: states, ledgers, timelines.
namespace penstock::inline v0_1 {
namespace detail {

/// A text as a JSON string. Each byte that is not valid UTF-8 becomes U+FFFD, because names come from
/// untrusted bytes. Source: RFC 8259, section 7; the Unicode Standard, table 3-7.
[[nodiscard]] std::string json_quoted(std::string_view s);

/// A text with U+FFFD for each byte that is not valid UTF-8: what a reader gets back from `json_quoted`.
[[nodiscard]] std::string as_utf8(std::string_view s);

/// The length in bytes of the UTF-8 character at the beginning of a text; 0 if it is not valid.
[[nodiscard]] std::size_t utf8_length(std::string_view s) noexcept;

/// A strict reader of JSON whose names come in a known order; it allows blanks between tokens. It reads what
/// this library writes: of the escapes, \", \\, \u00XX for characters below 128, and \ufffd.
///
/// Anything else is an error with its offset: "<what>: expected <that>".
class json_reader {
 public:
  /// What the error messages call the text being read; `stage` may be empty.
  struct subject {
    errc code;
    std::string_view what, stage;
  };
  json_reader(std::string_view text, subject of) noexcept : text_(text), of_(of) {}

  /// The offset of the next token.
  [[nodiscard]] std::size_t at() noexcept;
  /// Whether the text ended where more was expected: it may be truncated.
  [[nodiscard]] bool was_cut() const noexcept { return cut_; }

  void expect(char c);
  void name(std::string_view wanted);
  /// Reads the name and its colon if they come next; otherwise reads nothing.
  [[nodiscard]] bool optional_name(std::string_view wanted);
  /// Reads a comma, the name and its colon if they come next; otherwise reads nothing.
  [[nodiscard]] bool next_name(std::string_view wanted);
  [[nodiscard]] std::string string();
  [[nodiscard]] std::uint64_t number();
  /// Reads a number that is written as a string, so that no reader rounds it.
  [[nodiscard]] std::uint64_t quoted_number();
  /// Reads an array; `read_one` reads each element.
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
  /// Fails at the next character; if there is none, the text is truncated.
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
