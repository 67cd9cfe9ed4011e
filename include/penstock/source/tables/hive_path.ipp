// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/hive_path.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/tables/table_facts.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string hive_text(std::string_view escaped) {
  std::string made;
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    unsigned value = 0;
    const char* const digits = escaped.data() + i + 1;
    if (escaped[i] == '%' && i + 2 < escaped.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      made += static_cast<char>(value);
      i += 2;
    } else {
      made += escaped[i];
    }
  }
  return made;
}

PENSTOCK_INLINE std::vector<hive_part> hive_parts(std::string_view path) {
  std::vector<hive_part> found;
  for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/')) {
    const std::string_view folder = path.substr(0, end);
    path.remove_prefix(end + 1);
    const std::size_t equal = folder.find('=');
    if (equal == 0 || equal == folder.npos) continue;
    hive_part one{hive_text(folder.substr(0, equal)), hive_text(folder.substr(equal + 1))};
    if (one.value == "__HIVE_DEFAULT_PARTITION__") one.value.reset();
    if (std::ranges::any_of(found, [&](const hive_part& other) { return other.column == one.column; }))
      throw error(errc::argument, {"two folders of the path say what the column '", one.column,
                                   "' is: name the files from a folder further down"});
    found.push_back(std::move(one));
  }
  return found;
}

/// The number that a text is, all of it; none for other texts.
template <class Number>
[[nodiscard]] std::optional<Number> hive_number(std::string_view text) noexcept {
  Number value = 0;
  const char* const end = text.data() + text.size();
  const auto [behind, failed] = std::from_chars(text.data(), end, value);
  if (text.empty() || failed != std::errc{} || behind != end) return std::nullopt;
  return value;
}

PENSTOCK_INLINE std::optional<std::int64_t> days_of_date(std::string_view text) {
  int year = 0;
  unsigned month = 0, day = 0;
  const char *at = text.data(), *const end = at + text.size();
  const auto part = [&](auto& into, char behind) {
    const auto [next, failed] = std::from_chars(at, end, into);
    at = next;
    if (failed != std::errc{}) return false;
    if (behind == '\0') return at == end;
    return at != end && *at++ == behind;
  };
  if (!part(year, '-') || !part(month, '-') || !part(day, '\0')) return std::nullopt;
  if (year < static_cast<int>(std::chrono::year::min()) || year > static_cast<int>(std::chrono::year::max()))
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// The two's complement of a decimal, with its first byte first: "-1.25", "1E-3". Digits behind the point that
// the type does not have must be zeros.
PENSTOCK_INLINE bool decimal_value(const arrow_type& type, std::string_view text, buffer& into) {
  const auto digits = digits_of_decimal(type);
  if (!digits) return false;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != text.npos) {
    const std::size_t begin = e + (text.substr(e + 1).starts_with('+') ? 2 : 1);
    const auto said = hive_number<std::int64_t>(text.substr(std::min(begin, text.size())));
    if (!said) return false;
    exponent = *said;
    text = text.substr(0, e);
  }
  std::string whole(text);
  if (const std::size_t point = text.find('.'); point != text.npos) {
    exponent -= static_cast<std::int64_t>(text.size() - point - 1);
    whole.erase(point, 1);
  }
  if (whole.empty() || whole.find_first_not_of("0123456789") != whole.npos) return false;
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  if (!whole.empty()) {
    constexpr std::int64_t maximum = 1'000;  // of a number that no decimal holds
    exponent += digits->behind;
    if (exponent > maximum || exponent < -maximum) return false;
    for (; exponent < 0; ++exponent) {
      if (whole.empty() || whole.back() != '0') return false;
      whole.pop_back();
    }
    whole.append(static_cast<std::size_t>(exponent), '0');
  }
  if (whole.size() > static_cast<std::size_t>(digits->all)) return false;
  into.resize_for_overwrite(static_cast<std::size_t>(type.width));
  std::ranges::fill(into.span(), std::byte{});
  for (const char digit : whole) {
    unsigned carry = static_cast<unsigned>(digit - '0');
    for (std::byte& one : into.span()) {
      carry += 10 * std::to_integer<unsigned>(one);
      one = static_cast<std::byte>(carry & 0xff);
      carry >>= 8;
    }
  }
  unsigned carry = 1;
  for (std::byte& one : into.span()) {
    if (!negative) break;
    carry += 0xff - std::to_integer<unsigned>(one);
    one = static_cast<std::byte>(carry & 0xff);
    carry >>= 8;
  }
  return true;
}

// Days since 1970, as a number or as "2024-01-31".
PENSTOCK_INLINE std::optional<std::int64_t> hive_days(std::string_view text) {
  if (const auto days = hive_number<std::int64_t>(text)) return days;
  const bool is_date = text.size() == 10 && text[0] != '-' && text[4] == '-' && text[7] == '-';
  return is_date ? days_of_date(text) : std::nullopt;
}

PENSTOCK_INLINE std::string hive_date(std::int64_t days) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(days))};
  const auto padded = [](auto value, std::size_t digits) {
    std::string made = std::to_string(value);
    if (made.size() < digits) made.insert(0, digits - made.size(), '0');
    return made;
  };
  return padded(static_cast<int>(date.year()), 4) + "-" + padded(static_cast<unsigned>(date.month()), 2) +
         "-" + padded(static_cast<unsigned>(date.day()), 2);
}

// A value as a column of one row has it: a text with its offsets in front of it.
PENSTOCK_INLINE buffer hive_value(const arrow_type& type, const std::string& text) {
  buffer room;
  const auto keep = [&](auto value) {
    room.resize_for_overwrite(sizeof(value));
    std::memcpy(room.data(), &value, sizeof(value));
    return true;
  };
  bool good = false;
  if (type.layout == arrow_layout::bytes32) {
    const std::uint32_t offsets[2] = {0, static_cast<std::uint32_t>(text.size())};
    room.resize_for_overwrite(sizeof(offsets) + text.size());
    std::memcpy(room.data(), offsets, sizeof(offsets));
    if (!text.empty()) std::memcpy(room.data() + sizeof(offsets), text.data(), text.size());
    good = true;
  } else if (type.layout == arrow_layout::bits) {
    const bool yes = text == "true" || text == "True";
    good = (yes || text == "false" || text == "False") && keep(static_cast<std::uint8_t>(yes));
  } else if (type.format == "g") {
    if (const auto real = hive_number<double>(text)) good = keep(*real);
  } else if (type.format == "f") {
    if (const auto real = hive_number<float>(text)) good = keep(*real);
  } else if (type.format.starts_with("d:")) {
    good = decimal_value(type, text, room);
  } else if (const auto value = type.format == "tdD" ? hive_days(text) : hive_number<std::int64_t>(text);
             value && (type.number != arrow_number::none || type.format == "tdD")) {
    const auto keep_as = [&]<class T>(T) {
      return type.width == sizeof(T) && std::in_range<T>(*value) && keep(static_cast<T>(*value));
    };
    good = (type.format == "L" && *value >= 0 && keep(static_cast<std::uint64_t>(*value))) ||
           keep_as(std::int64_t{}) || keep_as(std::int32_t{}) || keep_as(std::int16_t{}) ||
           keep_as(std::int8_t{});
  }
  if (!good)
    throw error(errc::format, {"the column '", type.name, "' of type ", type.text(), " has a file's value '",
                               text, "', which is none"});
  return room;
}

PENSTOCK_INLINE std::string hive_cell_text(const arrow_cell& cell) {
  if (cell.is_null()) return "null";
  if (cell.type().layout == arrow_layout::bits) return cell.bit() ? "true" : "false";
  if (cell.type().number == arrow_number::none) return text({"'", text_of(cell.bytes()), "'"});
  if (is_real(cell.type().number)) return number_text(real_arrow_number(cell, sizeof(double)));
  const arrow_whole whole = whole_arrow_number(cell);
  const auto value = static_cast<std::int64_t>(whole.bits);
  if (cell.type().format == "tdD") return hive_date(value);
  return whole.negative ? std::to_string(value) : std::to_string(whole.bits);
}

PENSTOCK_INLINE bool same_hive_value(const arrow_cell& a, const arrow_cell& b) {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.type().layout == arrow_layout::bits) return a.bit() == b.bit();
  if (a.type().number == arrow_number::none) return text_of(a.bytes()) == text_of(b.bytes());
  if (b.type().number == arrow_number::float64 || b.type().number == arrow_number::float32) {
    const double first = real_arrow_number(a, sizeof(double)), second = real_arrow_number(b, sizeof(double));
    if (std::isnan(first) || std::isnan(second)) return std::isnan(first) && std::isnan(second);
    return !(first < second) && !(first > second);
  }
  const arrow_whole first = whole_arrow_number(a), second = whole_arrow_number(b);
  return first.bits == second.bits && first.negative == second.negative;
}

PENSTOCK_INLINE hive_columns::hive_columns(std::span<const std::string> paths) {
  std::vector<hive_part> first;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    in_file(paths[i], [&] {
      std::vector<hive_part> parts = hive_parts(paths[i]);
      if (i == 0) first = parts;
      if (!std::ranges::equal(parts, first, {}, &hive_part::column, &hive_part::column))
        throw error(errc::format, {"the folders of the path say what ", parts.size(),
                                   " columns are, and not the same as those of '", paths.front(), "'"});
      texts_.emplace_back();
      for (hive_part& one : parts) texts_.back().push_back(std::move(one.value));
    });
  }
  for (std::size_t i = 0; i < first.size(); ++i) {
    const bool numbers = std::ranges::all_of(
        texts_, [&](const auto& file) { return !file[i] || hive_number<std::int64_t>(*file[i]); });
    types_.push_back(arrow_type::of_format(numbers ? "l" : "u"));
    types_.back().name = first[i].column;
  }
  keep_values();
}

PENSTOCK_INLINE hive_columns::hive_columns(std::vector<arrow_type> types,
                                           std::vector<std::vector<std::optional<std::string>>> values)
    : types_(std::move(types)), texts_(std::move(values)) {
  keep_values();
}

PENSTOCK_INLINE void hive_columns::give_type(std::size_t i, const arrow_type& stored) {
  const arrow_type* of = &stored;
  while (!of->dictionary.empty()) of = &of->dictionary.front();
  std::string_view format = of->format;
  if (of->number != arrow_number::none && format.size() == 1)
    format = format == "f" ? "f" : format == "e" || format == "g" ? "g" : format == "L" ? "L" : "l";
  else if (of->is_bytes())
    format = "u";
  else if (format == "n")
    format = value_type(i).format;
  else if (format != "b" && format != "tdD")
    throw error(errc::format, {"the column '", stored.name,
                               "' is in the names of folders and in files, too, "
                               "there of type ",
                               stored.text(),
                               ", whose values are not compared with those of the folders: name the files "
                               "from a folder further down"});
  arrow_type made = arrow_type::of_format(format);
  made.name = value_type(i).name;
  for (arrow_type& one : types_) {
    arrow_type values = std::move(one.dictionary.front());
    one = std::move(values);
  }
  types_[i] = std::move(made);
  memory_.clear();
  values_.clear();
  keep_values();
}

PENSTOCK_INLINE void hive_columns::check_equal(std::size_t file, std::size_t i, const arrow_leaf& stored,
                                               std::uint64_t rows) const {
  const arrow_cell folder(values_[file * types_.size() + i], 0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    const arrow_cell one = stored.at(row);
    if (same_hive_value(one, folder)) continue;
    throw error(errc::format, {"the column '", value_type(i).name, "' is ", hive_cell_text(one),
                               " in a row of the file, and ", hive_cell_text(folder),
                               " by the name of its folder: move the file, or read other columns only"});
  }
}

PENSTOCK_INLINE std::uint64_t hive_columns::mark(std::size_t file) const noexcept {
  std::uint64_t made = 0;
  for (const auto& one : texts_[file]) made = mix64(made ^ (one ? hash_bytes(1, bytes_of(*one)) : 0));
  return made;
}

PENSTOCK_INLINE arrow_column hive_columns::column(std::size_t file, std::size_t i, std::uint64_t rows,
                                                  const std::byte* numbers) const {
  arrow_column made;
  made.type = &types_[i];
  made.length = rows;
  made.values = numbers;
  made.dictionary.push_back(&values_[file * types_.size() + i]);
  return made;
}

PENSTOCK_INLINE void hive_columns::keep_values() {
  for (arrow_type& one : types_) {
    arrow_type numbers = arrow_type::of_format("c");
    numbers.name = one.name;
    numbers.dictionary.push_back(std::move(one));
    one = std::move(numbers);
  }
  static constexpr std::byte none[16]{};
  values_.resize(texts_.size() * types_.size());
  for (std::size_t file = 0; file < texts_.size(); ++file)
    for (std::size_t i = 0; i < types_.size(); ++i) {
      arrow_column& made = values_[file * types_.size() + i];
      made.type = &value_type(i);
      made.length = 1;
      made.validity = texts_[file][i] ? nullptr : none;
      made.offsets = made.values = none;
      if (!texts_[file][i]) continue;
      buffer room = hive_value(value_type(i), *texts_[file][i]);
      const bool text = value_type(i).layout == arrow_layout::bytes32;
      made.offsets = room.data();
      made.values = text ? room.data() + 8 : room.data();
      made.bytes = text ? room.size() - 8 : 0;
      memory_.push_back(std::move(room));
    }
}

}  // namespace penstock::inline v0_1::detail
