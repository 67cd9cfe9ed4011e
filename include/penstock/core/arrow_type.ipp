// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>

#include <penstock/core/message.hpp>

#include <array>
#include <charconv>
#include <system_error>

namespace penstock::inline v0_1 {

namespace detail {

struct arrow_format {
  std::string_view format;  // the whole of it, or its beginning up to the colon
  std::string_view name;
  arrow_layout layout;
  arrow_number number;
  std::uint64_t width;
};

PENSTOCK_INLINE const arrow_format* find_arrow_format(std::string_view format) noexcept {
  using enum arrow_layout;
  using n = arrow_number;
  static constexpr auto known =
      std::to_array<arrow_format>({{"n", "null", nothing, n::none, 0},
                                   {"b", "bool", bits, n::none, 0},
                                   {"c", "int8", fixed, n::int8, 1},
                                   {"C", "uint8", fixed, n::uint8, 1},
                                   {"s", "int16", fixed, n::int16, 2},
                                   {"S", "uint16", fixed, n::uint16, 2},
                                   {"i", "int32", fixed, n::int32, 4},
                                   {"I", "uint32", fixed, n::uint32, 4},
                                   {"l", "int64", fixed, n::int64, 8},
                                   {"L", "uint64", fixed, n::uint64, 8},
                                   {"e", "halffloat", fixed, n::float16, 2},
                                   {"f", "float", fixed, n::float32, 4},
                                   {"g", "double", fixed, n::float64, 8},
                                   {"z", "binary", bytes32, n::none, 0},
                                   {"Z", "large_binary", bytes64, n::none, 0},
                                   {"vz", "binary_view", views, n::none, 16},
                                   {"u", "string", bytes32, n::none, 0},
                                   {"U", "large_string", bytes64, n::none, 0},
                                   {"vu", "string_view", views, n::none, 16},
                                   {"tdD", "date32[day]", fixed, n::int32, 4},
                                   {"tdm", "date64[ms]", fixed, n::int64, 8},
                                   {"tts", "time32[s]", fixed, n::int32, 4},
                                   {"ttm", "time32[ms]", fixed, n::int32, 4},
                                   {"ttu", "time64[us]", fixed, n::int64, 8},
                                   {"ttn", "time64[ns]", fixed, n::int64, 8},
                                   {"tDs", "duration[s]", fixed, n::int64, 8},
                                   {"tDm", "duration[ms]", fixed, n::int64, 8},
                                   {"tDu", "duration[us]", fixed, n::int64, 8},
                                   {"tDn", "duration[ns]", fixed, n::int64, 8},
                                   {"tiM", "month_interval", fixed, n::int32, 4},
                                   {"tiD", "day_time_interval", fixed, n::none, 8},
                                   {"tin", "month_day_nano_interval", fixed, n::none, 16},
                                   {"tss:", "timestamp[s", fixed, n::int64, 8},
                                   {"tsm:", "timestamp[ms", fixed, n::int64, 8},
                                   {"tsu:", "timestamp[us", fixed, n::int64, 8},
                                   {"tsn:", "timestamp[ns", fixed, n::int64, 8},
                                   {"+l", "list", list32, n::none, 0},
                                   {"+L", "large_list", list64, n::none, 0},
                                   {"+m", "map", list32, n::none, 0},
                                   {"+s", "struct", record, n::none, 0},
                                   {"w:", "fixed_size_binary", fixed, n::none, 0},
                                   {"d:", "decimal", fixed, n::none, 0},
                                   {"+w:", "fixed_size_list", fixed_list, n::none, 0},
                                   {"+vl", "list_view", list_view32, n::none, 0},
                                   {"+vL", "large_list_view", list_view64, n::none, 0},
                                   {"+r", "run_end_encoded", other, n::none, 0},
                                   {"+ud:", "dense_union", other, n::none, 0},
                                   {"+us:", "sparse_union", other, n::none, 0}});
  const std::string_view head = format.substr(0, format.find(':') + 1);
  for (const arrow_format& one : known)
    if (one.format == format || (!head.empty() && one.format == head)) return &one;
  return nullptr;
}

// The last of the numbers that stand behind the colon of a format, of which there are `count`.
PENSTOCK_INLINE bool arrow_format_number(std::string_view format, std::size_t count,
                                         std::int64_t& last) noexcept {
  const char *at = format.data() + format.find(':') + 1, *const end = format.data() + format.size();
  for (; count != 0; --count) {
    const auto [behind, failed] = std::from_chars(at, end, last);
    if (failed != std::errc{} || (count != 1 && (behind == end || *behind != ','))) return false;
    at = behind + (count == 1 ? 0 : 1);
  }
  return at == end;
}

}  // namespace detail

PENSTOCK_INLINE arrow_type arrow_type::of_format(std::string_view format) {
  arrow_type made;
  made.format = format;
  const detail::arrow_format* const known = detail::find_arrow_format(format);
  if (known == nullptr) return made;
  made.layout = known->layout;
  made.number = known->number;
  made.width = known->width;
  std::int64_t said = 0;
  bool good = true;
  if (known->format == "w:" || known->format == "+w:") {
    good = detail::arrow_format_number(format, 1, said);
  } else if (known->format == "d:") {
    // precision, scale and, unless it is 128, the bits
    good = detail::arrow_format_number(format, 3, said);
    if (!good) good = detail::arrow_format_number(format, 2, said), said = 128;
    good = good && (said == 32 || said == 64 || said == 128 || said == 256);
    said /= 8;
  } else {
    return made;
  }
  if (!good || said < 0) {
    made.layout = arrow_layout::other;
    said = 0;
  }
  made.width = static_cast<std::uint64_t>(said);
  return made;
}

PENSTOCK_INLINE bool arrow_type::reads_like(const arrow_type& other) const noexcept {
  if (format != other.format || children.size() != other.children.size() ||
      dictionary.size() != other.dictionary.size())
    return false;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (layout == arrow_layout::record && children[i].name != other.children[i].name) return false;
    if (!children[i].reads_like(other.children[i])) return false;
  }
  return dictionary.empty() || dictionary.front().reads_like(other.dictionary.front());
}

PENSTOCK_INLINE std::string arrow_type::text() const {
  if (!dictionary.empty()) return detail::text({"dictionary<", dictionary.front().text(), ">"});
  const detail::arrow_format* const known = detail::find_arrow_format(format);
  if (known == nullptr) return detail::text({"unknown ('", format, "')"});
  std::string line(known->name);
  if (known->name.starts_with("timestamp")) {
    const std::string_view zone = std::string_view(format).substr(format.find(':') + 1);
    detail::append(line, {zone.empty() ? "" : ", tz=", zone, "]"});
  } else if (known->format == "w:") {
    detail::append(line, {"[", width, "]"});
  } else if (known->format == "d:") {
    detail::append(line, {8 * width, "(", std::string_view(format).substr(2), ")"});
  }
  if (children.empty()) return line;
  line += '<';
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i != 0) line += ", ";
    if (layout == arrow_layout::record) detail::append(line, {children[i].name, ": "});
    line += children[i].text();
  }
  line += '>';
  if (layout == arrow_layout::fixed_list) detail::append(line, {"[", width, "]"});
  return line;
}

}  // namespace penstock::inline v0_1
