// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
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

/// The positions of the lines of a file: the offset of every `group`-th line, so that 64 short lines or
/// 4 KiB of longer ones share an entry.
struct line_table {
  std::vector<std::uint64_t> begins;
  std::uint64_t count = 0;
  std::uint64_t group = 1;  // a power of two

  line_table() = default;
  /// One pass over the text. A line ends after "\n"; the last one may end with the text.
  explicit line_table(std::string_view text);

  /// The entry for a line, and the number of lines to skip from there.
  [[nodiscard]] std::size_t entry(std::uint64_t line) const noexcept { return detail::to_size(line / group); }
  [[nodiscard]] std::uint64_t beyond(std::uint64_t line) const noexcept { return line % group; }

  /// The end of the line that begins at `at`, after its "\n" if it has one.
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

  /// Finds the lines of all files, several files at a time. The session must have views.
  void read(storage_facts where, session_view session, std::size_t threads);
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/line_files.ipp>
#endif
