// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>

#include <charconv>

namespace penstock::inline v0_1::detail {

[[gnu::noinline]] PENSTOCK_INLINE void piece::append_to(std::string& line) const {
  if (kind_ == kind::text) {
    line.append(data_, static_cast<std::size_t>(value_));
  } else if (kind_ == kind::character) {
    line.push_back(static_cast<char>(value_));
  } else {
    char digits[24];
    char* begin = digits + sizeof(digits);
    for (std::uint64_t rest = value_; begin == digits + sizeof(digits) || rest != 0; rest /= 10)
      *--begin = static_cast<char>('0' + rest % 10);
    if (kind_ == kind::negative) *--begin = '-';
    line.append(begin, static_cast<std::size_t>(digits + sizeof(digits) - begin));
  }
}

[[gnu::noinline]] PENSTOCK_INLINE void append(std::string& line, std::initializer_list<piece> pieces) {
  for (const piece& p : pieces) p.append_to(line);
}

[[gnu::noinline]] PENSTOCK_INLINE std::string text(std::initializer_list<piece> pieces) {
  std::string line;
  append(line, pieces);
  return line;
}

PENSTOCK_INLINE std::string number_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof(digits), number).ptr};
}

PENSTOCK_INLINE std::string list_text(std::string_view head, std::initializer_list<std::string_view> items,
                                      std::string_view between, std::string_view tail) {
  std::string line(head);
  for (const std::string_view& item : items)
    line.append(&item == items.begin() ? std::string_view() : between).append(item);
  return line.append(tail);
}

}  // namespace penstock::inline v0_1::detail
