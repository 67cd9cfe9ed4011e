// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/text/csv_rows.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::size_t csv_row_ends::find(std::string_view piece, bool first) noexcept {
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

}  // namespace penstock::inline v0_1::detail
