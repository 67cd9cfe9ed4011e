// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/inspection/detail/value_text.hpp>

#include <penstock/core/known_formats.hpp>

#include <algorithm>
#include <charconv>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string number_text(float value) {
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
PENSTOCK_INLINE std::string number_text(double value) {
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// The bytes of the character in front; 0 if it is no UTF-8, a control character, or one that changes how
/// others are shown.
[[nodiscard]] PENSTOCK_INLINE std::size_t printable_character(std::string_view left) {
  const auto c = static_cast<unsigned char>(left.front());
  const std::size_t length = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  if (length == 0 || length > left.size()) return 0;
  std::uint32_t point = length == 1 ? c : c & (0xffu >> (length + 1));
  for (std::size_t k = 1; k < length; ++k) {
    const auto next = static_cast<unsigned char>(left[k]);
    if ((next & 0xc0u) != 0x80) return 0;
    point = point << 6 | (next & 0x3fu);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool hidden = point < 0x20 || (point >= 0x7f && point < 0xa0) ||
                      (point >= 0xd800 && point <= 0xf8ff) || (point >= 0x200b && point <= 0x200f) ||
                      (point >= 0x2028 && point <= 0x202e) || (point >= 0x2060 && point <= 0x206f) ||
                      point == 0xfeff || point > 0x10ffff;
  return overlong || hidden ? 0 : length;
}

PENSTOCK_INLINE std::string quoted_text(std::string_view all) {
  constexpr std::size_t longest = 64;
  constexpr char digits[] = "0123456789abcdef";
  std::string made = "\"";
  while (!all.empty() && made.size() < longest) {
    const auto c = static_cast<unsigned char>(all.front());
    std::size_t length = printable_character(all);
    if (length != 0) {
      if (c == '"' || c == '\\') made += '\\';
      made.append(all.substr(0, length));
    } else {
      length = 1;
      if (c == '\n' || c == '\t')
        made += c == '\n' ? "\\n" : "\\t";
      else
        made.append("\\x").append(1, digits[c >> 4]).append(1, digits[c & 15]);
    }
    all.remove_prefix(length);
  }
  return made + (all.empty() ? "\"" : "\" ...");
}

PENSTOCK_INLINE std::string bytes_text(bytes_view bytes) {
  constexpr std::size_t looked_at = 64, shown = 16;
  std::string_view head =
      bytes.empty() ? std::string_view() : text_of(bytes.first(std::min(looked_at, bytes.size())));
  std::string made = text({bytes.size(), bytes.size() == 1 ? " byte" : " bytes"});
  if (bytes.empty()) return made;
  if (const std::string_view kind = known_format(bytes); !kind.empty()) {
    made.append(", ").append(kind);
  } else {
    const std::string_view all = text_of(bytes);
    bool printable = true;
    while (printable && !head.empty()) {
      const std::size_t length =
          printable_character(all.substr(static_cast<std::size_t>(head.data() - all.data())));
      printable = length != 0 || head.front() == '\n' || head.front() == '\t' || head.front() == '\r';
      head.remove_prefix(std::min(std::max<std::size_t>(length, 1), head.size()));
    }
    if (printable) return made + ": " + quoted_text(all);
  }
  constexpr char digits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < std::min(shown, bytes.size()); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    made.append(i == 0 ? ": " : " ").append(1, digits[value >> 4]).append(1, digits[value & 15]);
  }
  return made + (bytes.size() > shown ? " ..." : "");
}

/// The value of a cell without its type. Lists in lists are followed to this many levels.
[[nodiscard]] PENSTOCK_INLINE std::string arrow_value_text(const arrow_cell& cell, unsigned levels) {
  if (cell.is_null()) return "null";
  if (is_real(cell.type().number)) {
    const double value = real_arrow_number(cell, sizeof(double));
    return cell.type().number == arrow_number::float64 ? number_text(value)
                                                       : number_text(static_cast<float>(value));
  }
  const auto whole = with_whole_number(
      cell.type().number, [&]<class T>(T) { return number_text(cell.number<T>()); },
      [] { return std::string(); });
  if (!whole.empty()) return whole;
  switch (cell.type().layout) {
    case arrow_layout::bits:
      return number_text(cell.bit());
    case arrow_layout::bytes32:
    case arrow_layout::bytes64:
    case arrow_layout::views:
    case arrow_layout::fixed: {
      const bool characters =
          cell.type().format == "u" || cell.type().format == "U" || cell.type().format == "vu";
      return characters ? quoted_text(cell.bytes().empty() ? std::string_view() : text_of(cell.bytes()))
                        : bytes_text(cell.bytes());
    }
    case arrow_layout::list32:
    case arrow_layout::list64:
    case arrow_layout::fixed_list: {
      const arrow_slice values = cell.list();
      if (levels == 0) return text({"[", values.count, " values]"});
      std::string made = "[";
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(values.count, shown_values); ++i)
        made.append(i == 0 ? "" : ", ")
            .append(arrow_value_text(arrow_cell(*values.column, values.first + i), levels - 1));
      return values.count > shown_values ? text({made, ", ...] of ", values.count, " values"}) : made + "]";
    }
    default:
      return "a value";
  }
}

PENSTOCK_INLINE std::string arrow_text(const arrow_cell& cell) {
  return arrow_value_text(cell, 3) + " (" + cell.type().text() + ")";
}

}  // namespace penstock::inline v0_1::detail
