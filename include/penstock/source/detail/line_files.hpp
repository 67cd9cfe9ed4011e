// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/detail/known_files.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// Where the lines of a file are: the offset of each `group`-th one, so that 64 short lines or 4 KiB of
/// longer ones share an entry.
struct line_table {
  std::vector<std::uint64_t> begins;
  std::uint64_t count = 0;
  std::uint64_t group = 1;  // a power of two

  line_table() = default;
  /// One pass over the text. A line ends behind "\n"; the last one may end with the text.
  explicit line_table(std::string_view text);

  /// The entry for a line, and how many lines are to be passed from there.
  [[nodiscard]] std::size_t entry(std::uint64_t line) const noexcept {
    return static_cast<std::size_t>(line / group);
  }
  [[nodiscard]] std::uint64_t beyond(std::uint64_t line) const noexcept { return line % group; }

  /// Where the line that begins at `at` ends, behind its "\n" if it has one.
  [[nodiscard]] static std::size_t end_of(std::string_view text, std::size_t at) noexcept {
    const void* const found = std::memchr(text.data() + at, '\n', text.size() - at);
    return found == nullptr ? text.size()
                            : static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + 1;
  }

 private:
  /// Keeps every other entry.
  void thin_out();
};

/// The files of a dataset of lines.
struct line_files : known_files {
  std::vector<line_table> tables;  // by shard

  /// Looks for the lines of all files, of which the session must have views; several at a time.
  void read(storage_facts where, session_view session, std::size_t threads);
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/line_files.ipp>
#endif
