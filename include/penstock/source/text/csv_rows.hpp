// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

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
  [[nodiscard]] std::size_t find(std::string_view piece, bool first) noexcept {
    std::size_t last = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const char c = piece[i];
      switch (at_) {
        case place::escaped:
          at_ = place::quoted;
          continue;
        case place::escaped_outside:
          at_ = place::value;
          continue;
        case place::quoted:
          // Of two quotes the second opens the value again, as if it began.
          if (marks_.escape != '\0' && c == marks_.escape)
            at_ = place::escaped;
          else if (c == marks_.quote)
            at_ = place::begin;
          continue;
        case place::begin:
          if (c == marks_.quote) {
            at_ = place::quoted;
            continue;
          }
          break;
        case place::value:
          break;
      }
      if (marks_.escape != '\0' && c == marks_.escape) {
        at_ = place::escaped_outside;
      } else if (c == '\n') {
        at_ = place::begin;
        last = i + 1;
        if (first) return last;
      } else {
        at_ = c == marks_.delimiter || c == '\r' ? place::begin : place::value;
      }
    }
    return last;
  }
  /// Whether a quote is open that nothing has closed.
  [[nodiscard]] bool quoted() const noexcept { return at_ == place::quoted || at_ == place::escaped; }

 private:
  enum class place : unsigned char { value, begin, quoted, escaped, escaped_outside };

  csv_marks marks_;
  place at_ = place::begin;
};

}  // namespace penstock::inline v0_1::detail
