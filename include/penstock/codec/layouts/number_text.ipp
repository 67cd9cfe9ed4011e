// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/number_text.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string quoted(bytes_view bytes, std::size_t maximum) {
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

PENSTOCK_INLINE void no_number(bytes_view bytes, std::string_view expected) {
  throw error(errc::format, {"found ", quoted(bytes), " where a ", expected, " was expected"});
}

PENSTOCK_INLINE void number_out_of_range(bytes_view bytes, std::initializer_list<piece> range) {
  throw error(errc::format, {"the number ", quoted(bytes), " is out of range", text(range)});
}

}  // namespace penstock::inline v0_1::detail
