// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace penstock::inline v0_1 {

/// A sample that a ledger of `bad_samples` names.
struct bad_entry {
  /// What stands in its slot; nothing where it was skipped.
  struct substitute_place {
    std::uint64_t index = 0;  ///< of the position, in the same epoch
    std::optional<std::uint64_t> source{};
    std::string key, file;
    friend bool operator==(const substitute_place&, const substitute_place&) = default;
  };

  std::uint64_t rank = 0;
  std::uint64_t epoch = 0, index = 0;     ///< the position
  std::optional<std::uint64_t> source{};  ///< the sample's number in the source
  std::string key, file;
  std::optional<std::uint64_t> offset{};
  std::string stage, code, reason;
  std::optional<substitute_place> substitute{};

  friend bool operator==(const bad_entry&, const bad_entry&) = default;
};

/// The lines of a ledger.
struct bad_entries {
  std::vector<bad_entry> all;
  std::uint64_t cut = 0;  ///< lines that a process which was killed did not finish
};

namespace detail {

/// A strict reader of exactly what `ledger_line` writes, blanks between tokens aside.
class bad_entry_reader {
 public:
  explicit bad_entry_reader(std::string_view text) : text_(text) {}

  std::optional<bad_entry> read() {
    bad_entry made;
    try {
      expect('{');
      made.rank = number_of("rank");
      expect(',');
      made.epoch = number_of("epoch");
      expect(',');
      made.index = number_of("index");
      made.source = next_number("source");
      made.key = next_text("key");
      made.file = next_text("file");
      made.offset = next_number("offset");
      made.stage = next_text("stage");
      made.code = next_text("code");
      made.reason = next_text("reason");
      expect(',');
      name("done");
      const std::size_t begin = at_;
      if (const std::string done = quoted(); done == "replaced") {
        expect(',');
        name("substitute");
        expect('{');
        bad_entry::substitute_place other;
        other.index = number_of("index");
        other.source = next_number("source");
        other.key = next_text("key");
        other.file = next_text("file");
        expect('}');
        made.substitute = other;
      } else if (done != "skipped") {
        fail("\"skipped\" or \"replaced\"", begin);
      }
      expect('}');
    } catch (const ended&) {
      return std::nullopt;
    }
    blanks();
    if (at_ != text_.size()) fail("the end of the line", at_);
    return made;
  }

 private:
  struct ended {};

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  [[nodiscard]] char peek() {
    if (at_ >= text_.size()) throw ended();
    return text_[at_];
  }
  void expect(char c) {
    blanks();
    if (peek() != c) fail(std::string("'") + c + "'", at_);
    ++at_;
  }
  void name(std::string_view wanted) {
    blanks();
    const std::size_t begin = at_;
    if (quoted() != wanted) fail("the name \"" + std::string(wanted) + "\"", begin);
    expect(':');
    blanks();
  }
  /// Whether a comma and this name come next; else nothing was read.
  [[nodiscard]] bool next(std::string_view wanted) {
    blanks();
    const std::size_t begin = at_;
    if (peek() != ',') return false;
    ++at_;
    blanks();
    if (peek() == '"' && quoted() == wanted) {
      expect(':');
      blanks();
      return true;
    }
    at_ = begin;
    return false;
  }
  std::optional<std::uint64_t> next_number(std::string_view wanted) {
    return next(wanted) ? std::optional(number()) : std::nullopt;
  }
  std::string next_text(std::string_view wanted) { return next(wanted) ? quoted() : std::string(); }
  std::uint64_t number_of(std::string_view wanted) {
    name(wanted);
    return number();
  }
  std::uint64_t number() {
    static_cast<void>(peek());
    std::uint64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, problem] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (problem != std::errc()) fail("a number of 64 bits", at_);
    if (end == text_.data() + text_.size()) throw ended();
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  std::string quoted() {
    expect('"');
    std::string value;
    while (peek() != '"') {
      if (text_[at_] != '\\') {
        value += text_[at_++];
        continue;
      }
      ++at_;
      if (const char escaped = peek(); escaped == '"' || escaped == '\\') {
        value += escaped;
        ++at_;
        continue;
      }
      const std::string_view code = text_.substr(at_, 5);
      unsigned character = 0;
      if (code.size() < 5) throw ended();
      if (code == "ufffd")
        value += "\xef\xbf\xbd";
      else if (code.starts_with("u00") &&
               std::from_chars(code.data() + 3, code.data() + 5, character, 16).ptr == code.data() + 5 &&
               character < 0x80)
        value += static_cast<char>(character);
      else
        fail("a character, or \\\", \\\\, \\u00XX or \\ufffd", at_ - 1);
      at_ += 5;
    }
    ++at_;
    return value;
  }
  [[noreturn]] static void fail(const std::string& wanted, std::size_t offset) {
    throw error(errc::format, {"this is no line of a ledger of bad samples: expected ", wanted})
        .in_stage("bad_samples")
        .at_offset(offset);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// Reads a line that `bad_samples` wrote into a ledger; nothing where the line was cut. Anything else is
/// `error(errc::format)`, with the offset. What was no UTF-8 in a name is U+FFFD.
template <class = void>
[[nodiscard]] std::optional<bad_entry> bad_entry_from(std::string_view line) {
  return detail::bad_entry_reader(line).read();
}

/// Reads a ledger that `bad_samples` wrote, as it is: nothing is sorted, and what was delivered again is
/// there again. All of it in memory. Throws `error(errc::io)`, or `error(errc::format)` with the offset in
/// the file.
template <class = void>
[[nodiscard]] bad_entries read_bad_ledger(const std::string& path) {
  std::string text;
  {
    std::FILE* const in = std::fopen(path.c_str(), "rb");
    if (in == nullptr)
      throw error(errc::io, "this ledger of bad samples cannot be opened; is its name right?").in_file(path);
    char piece[1 << 14];
    bool failed = false;
    try {
      for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof piece, in)) != 0;) text.append(piece, got);
      failed = std::ferror(in) != 0;
    } catch (...) {
      std::fclose(in);
      throw;
    }
    std::fclose(in);
    if (failed) throw error(errc::io, "this ledger of bad samples cannot be read").in_file(path);
  }
  bad_entries found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line(text.data() + begin, end - begin);
    try {
      if (auto one = line.empty() ? std::nullopt : bad_entry_from(line))
        found.all.push_back(std::move(*one));
      else
        found.cut += line.empty() ? 0u : 1u;
    } catch (error& e) {
      throw error(e.code(), e.message())
          .in_stage("bad_samples")
          .in_file(path)
          .at_offset(begin + e.offset().value_or(0));
    }
    begin = end + 1;
  }
  return found;
}

}  // namespace penstock::inline v0_1
