// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <string>

namespace penstock::inline v0_1::detail {

/// The first bytes of a field as one readable, quoted word for a message: `"12x
/// "`; longer ones end in "...".
[[nodiscard, gnu::cold]] std::string quoted(bytes_view bytes, std::size_t maximum = 20);

inline std::string quoted(bytes_view bytes, std::size_t maximum) {
  constexpr char hex[] = "0123456789abcdef";
  std::string text = "\"";
  for (const std::byte b : bytes.first(bytes.size() < maximum ? bytes.size() : maximum)) {
    const auto c = std::to_integer<unsigned char>(b);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += static_cast<char>(c);
    } else if (c == '\n') {
      text += "\\n";
    } else if (c >= 0x20 && c < 0x7f) {
      text += static_cast<char>(c);
    } else {
      text += "\\x";
      text += hex[c >> 4];
      text += hex[c & 15];
    }
  }
  text += '"';
  if (bytes.size() > maximum) text += "...";
  return text;
}

}  // namespace penstock::inline v0_1::detail
