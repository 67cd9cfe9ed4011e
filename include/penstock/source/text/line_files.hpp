// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/known_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The positions of the lines of a file: the offset of every `group`-th line, so that 64 short lines or
/// 4 KiB of longer ones share an entry.
struct line_table {
  std::vector<std::uint64_t> begins;
  std::vector<std::uint64_t> numbers;  // by entry: the lines before it in the file; empty if none is left out
  std::uint64_t count = 0;
  std::uint64_t blank = 0;  // the blank lines that are left out
  std::uint64_t group = 1;  // a power of two

  line_table() = default;
  /// One pass over the text. A line ends after "\n"; the last one may end with the text. `skip_blank`: lines
  /// of blanks alone are left out, and not counted.
  explicit line_table(std::string_view text, bool skip_blank = false);

  /// The entry for a line, and the number of lines to skip from there.
  [[nodiscard]] std::size_t entry(std::uint64_t line) const noexcept { return detail::to_size(line / group); }
  [[nodiscard]] std::uint64_t beyond(std::uint64_t line) const noexcept { return line % group; }

  /// The end of the line that begins at `at`, after its "\n" if it has one.
  [[nodiscard]] static std::size_t end_of(std::string_view text, std::size_t at) noexcept {
    const void* const found = std::memchr(text.data() + at, '\n', text.size() - at);
    return found == nullptr ? text.size()
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1;
  }
  /// Where the first line begins at or behind `at` that is not left out, or the end of the text.
  [[nodiscard]] std::size_t next_begin(std::string_view text, std::size_t at) const noexcept {
    return blank == 0 ? at : behind_blanks(text, at);
  }
  /// The number of lines, blank ones too, before this one in the file.
  [[nodiscard]] std::uint64_t number(std::string_view text, std::uint64_t line) const noexcept;

 private:
  [[nodiscard]] static std::size_t behind_blanks(std::string_view text, std::size_t at) noexcept;
  void add(std::size_t at);
  /// Keeps every other entry.
  void thin_out();
};

/// Whether a file of this name has JSON lines: "*.jsonl", "*.ndjson" or "*.json", or an unpacked copy of one.
[[nodiscard]] bool has_json_lines(std::string_view name) noexcept;

/// The files of a dataset of lines.
struct line_files : known_files {
  std::vector<line_table> tables;  // by shard

  /// Finds the lines of all files, several files at a time. The session must have views. `skip_blank`:
  /// whether blank lines are left out; nothing: in files whose names say that they are JSON lines.
  void read(storage_facts where, session_view session, std::size_t threads, std::optional<bool> skip_blank);
  [[nodiscard]] std::uint64_t fingerprint() const noexcept {
    return mix64(shards.fingerprint() ^ 0x6c696e6573);
  }
  [[nodiscard]] std::string describe() const;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/text/line_files.ipp>
#endif
