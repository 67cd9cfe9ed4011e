// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <cstddef>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// How values of a text stand beside each other.
struct csv_marks {
  char delimiter = ',', quote = '"', escape = '\0';  // an escape of 0: there is none
};

/// Finds where rows end, piece by piece: at a "\n" that is in no quotes.
///
/// Source: RFC 4180.
class csv_row_ends {
 public:
  explicit csv_row_ends(csv_marks marks) noexcept : marks_(marks) {}

  /// Continues behind the pieces before. Returns the place behind the first row end of the piece if `first`,
  /// and otherwise behind its last; 0 if there is none.
  [[nodiscard]] std::size_t find(std::string_view piece, bool first) noexcept;
  /// Whether a quote is open that nothing has closed.
  [[nodiscard]] bool quoted() const noexcept { return at_ == place::quoted || at_ == place::escaped; }

 private:
  enum class place : unsigned char { value, begin, quoted, escaped, escaped_outside };

  csv_marks marks_;
  place at_ = place::begin;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/text/csv_rows.ipp>
#endif
