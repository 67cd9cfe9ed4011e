// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/arrow_union.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/tables/table_facts.hpp>

#include <algorithm>
#include <utility>

namespace penstock::inline v0_1::detail {

// What a type is to those of other files: whole numbers and floating-point numbers apart from what counts
// days or seconds, and lists apart from maps.
PENSTOCK_INLINE bool is_arrow_whole(const arrow_type& type) noexcept {
  return type.format.size() == 1 && std::string_view("csilCSIL").find(type.format) != std::string_view::npos;
}

PENSTOCK_INLINE bool is_arrow_real(const arrow_type& type) noexcept {
  return type.format == "e" || type.format == "f" || type.format == "g";
}

PENSTOCK_INLINE bool is_arrow_list(const arrow_type& type) noexcept {
  return type.children.size() == 1 && type.format != "+m" && type.is_list();
}

// How many binary digits a number has that are exact; the sign apart.
PENSTOCK_INLINE std::uint64_t arrow_digits(const arrow_type& type) noexcept {
  if (type.format == "e") return 11;
  if (type.format == "f") return 24;
  if (type.format == "g") return 53;
  const bool is_signed = type.format[0] >= 'a';
  return 8 * type.width - (is_signed ? 1 : 0);
}

PENSTOCK_INLINE std::string_view common_arrow_number(const arrow_type& a, const arrow_type& b) noexcept {
  const auto has_sign = [](const arrow_type& one) { return one.format[0] >= 'a'; };
  if (is_arrow_real(a) && is_arrow_real(b)) return arrow_digits(a) >= arrow_digits(b) ? a.format : b.format;
  if (is_arrow_real(a) || is_arrow_real(b)) {
    const std::uint64_t least = std::max(arrow_digits(a), arrow_digits(b));
    return least <= 11 ? "e" : least <= 24 ? "f" : least <= 53 ? "g" : "";
  }
  if (has_sign(a) == has_sign(b)) return a.width >= b.width ? a.format : b.format;
  const std::uint64_t least = std::max(arrow_digits(a), arrow_digits(b));
  return least <= 7 ? "c" : least <= 15 ? "s" : least <= 31 ? "i" : least <= 63 ? "l" : "";
}

// The place of a unit's letter among "s", "m", "u", "n".
PENSTOCK_INLINE std::size_t arrow_unit(char letter) noexcept { return std::string_view("smun").find(letter); }

// Of dates, times, timestamps and durations; empty if there is none.
PENSTOCK_INLINE std::string common_arrow_time(std::string_view a, std::string_view b) {
  const bool days_of_a = a == "tdD" || a == "tdm", days_of_b = b == "tdD" || b == "tdm";
  if (days_of_a && days_of_b) return "tdm";
  if (days_of_b) return common_arrow_time(b, a);
  const auto zone = [](std::string_view format) { return format.substr(format.find(':') + 1); };
  if (days_of_a) {  // a day has no zone
    if (!b.starts_with("ts") || !zone(b).empty()) return {};
    return std::string(a == "tdm" && b[2] == 's' ? "tsm:" : b);
  }
  for (const std::string_view kind : {"ts", "tt", "tD"})
    if (a.starts_with(kind) && b.starts_with(kind)) {
      // What has a zone is a moment, what has none a reading of a clock; between zones only what is shown
      // differs.
      if (kind == "ts" && zone(a).empty() != zone(b).empty()) return {};
      std::string made(a);
      made[2] = arrow_unit(a[2]) >= arrow_unit(b[2]) ? a[2] : b[2];
      return made;
    }
  return {};
}

PENSTOCK_INLINE arrow_type like_arrow(const arrow_type& named, std::string_view format) {
  arrow_type made = arrow_type::of_format(format);
  made.name = named.name;
  return made;
}

// The children of both, one by one.
PENSTOCK_INLINE bool join_arrow_children(arrow_type& made, const arrow_type& other) {
  if (made.children.size() != other.children.size()) return false;
  for (std::size_t i = 0; i < made.children.size(); ++i) {
    auto both = common_arrow_type(made.children[i], other.children[i]);
    if (!both) return false;
    made.children[i] = std::move(*both);
  }
  return true;
}

PENSTOCK_INLINE std::optional<arrow_type> common_arrow_struct(arrow_type made, const arrow_type& other) {
  for (const arrow_type& field : made.children)  // it would not be known which is which
    if (std::ranges::count(made.children, field.name, &arrow_type::name) > 1) return std::nullopt;
  for (const arrow_type& field : other.children) {
    if (std::ranges::count(other.children, field.name, &arrow_type::name) > 1) return std::nullopt;
    const auto at = std::ranges::find(made.children, field.name, &arrow_type::name);
    if (at == made.children.end()) {
      made.children.push_back(field);
      continue;
    }
    auto both = common_arrow_type(*at, field);
    if (!both) return std::nullopt;
    *at = std::move(*both);
  }
  return made;
}

PENSTOCK_INLINE std::optional<arrow_type> common_arrow_type(const arrow_type& a, const arrow_type& b) {
  if (b.format == "n" || a.reads_like(b)) return a;
  if (a.format == "n") {
    arrow_type made = b;
    made.name = a.name;
    return made;
  }
  if (!a.dictionary.empty() || !b.dictionary.empty()) {
    const auto values = [](const arrow_type& one) -> const arrow_type& {
      return one.dictionary.empty() ? one : one.dictionary.front();
    };
    const auto both = common_arrow_type(values(a), values(b));
    // Dictionaries of lists and structs are not converted.
    if (!both || !both->children.empty()) return std::nullopt;
    arrow_type made = *both;
    made.name = a.name;
    return made;
  }
  const auto is_number = [](const arrow_type& one) { return is_arrow_whole(one) || is_arrow_real(one); };
  if (is_number(a) && is_number(b)) {
    const std::string_view format = common_arrow_number(a, b);
    if (format.empty()) return std::nullopt;
    return like_arrow(a, format);
  }
  if (a.is_bytes() && b.is_bytes()) {
    const auto is_text = [](const arrow_type& one) { return one.format.ends_with('u') || one.format == "U"; };
    const bool large = a.layout == arrow_layout::bytes64 || b.layout == arrow_layout::bytes64;
    return like_arrow(a, is_text(a) && is_text(b) ? (large ? "U" : "u") : (large ? "Z" : "z"));
  }
  if (a.format.starts_with('t') && b.format.starts_with('t')) {
    const std::string format = common_arrow_time(a.format, b.format);
    if (format.empty()) return std::nullopt;
    return like_arrow(a, format);
  }
  if (const auto first = digits_of_decimal(a), second = digits_of_decimal(b); first && second) {
    if (first->behind != second->behind) return std::nullopt;
    const arrow_type& wide = a.width != b.width          ? (a.width > b.width ? a : b)
                             : first->all >= second->all ? a
                                                         : b;
    return like_arrow(a, wide.format);
  }
  if (is_arrow_list(a) && is_arrow_list(b)) {
    const auto is_large = [](const arrow_type& one) {
      return one.layout == arrow_layout::list64 || one.layout == arrow_layout::list_view64;
    };
    const bool large = is_large(a) || is_large(b);
    arrow_type made = like_arrow(a, a.format == b.format ? a.format : large ? "+L" : "+l");
    made.children = a.children;
    if (!join_arrow_children(made, b)) return std::nullopt;
    return made;
  }
  if (a.format == "+m" && b.format == "+m" && a.children.size() == 1 && b.children.size() == 1) {
    arrow_type made = a;  // the entry of a map is a struct whose fields may have any names
    if (!join_arrow_children(made.children.front(), b.children.front())) return std::nullopt;
    return made;
  }
  if (a.layout == arrow_layout::record && b.layout == arrow_layout::record) return common_arrow_struct(a, b);
  return std::nullopt;
}

PENSTOCK_INLINE void column_union::add(const arrow_type& columns, std::string_view name) {
  if (all_.format.empty()) {
    all_ = columns;
    first_ = name;
  } else if (!all_.reads_like(columns)) {
    join(all_, columns, "", name);
  }
}

PENSTOCK_INLINE void column_union::join(arrow_type& known, const arrow_type& given, const std::string& path,
                                        std::string_view name) {
  std::map<std::string, std::size_t, std::less<>> places, own;
  for (std::size_t i = 0; i < known.children.size(); ++i)
    if (const std::string& twice = known.children[i].name; !places.emplace(twice, i).second)
      refuse(path.empty() ? twice : text({path, ".", twice}), first_, nullptr, nullptr);
  for (std::size_t i = 0; i < given.children.size(); ++i) {
    const arrow_type& field = given.children[i];
    const std::string below = path.empty() ? field.name : text({path, ".", field.name});
    if (!own.emplace(field.name, i).second) {  // it would not be known which is which
      refuse(below, name, nullptr, nullptr);
      continue;
    }
    const auto at = places.find(field.name);
    if (at == places.end()) {
      known.children.push_back(field);
      from_[below] = name;
      continue;
    }
    arrow_type& same = known.children[at->second];
    const auto is_struct = [](const arrow_type& one) {
      return one.layout == arrow_layout::record && one.dictionary.empty();
    };
    if (is_struct(same) && is_struct(field)) {
      join(same, field, below, name);
      continue;
    }
    auto both = common_arrow_type(same, field);
    if (!both) {
      refuse(below, name, &same, &field);
    } else if (!both->reads_like(same)) {
      same = std::move(*both);
      from_[below] = name;
    }
  }
}

PENSTOCK_INLINE void column_union::refuse(const std::string& path, std::string_view name,
                                          const arrow_type* known, const arrow_type* given) {
  if (std::ranges::find(conflicts_, path, &column_conflict::column) != conflicts_.end()) return;
  const auto from = from_.find(path);
  conflicts_.push_back({path, std::string(from == from_.end() ? first_ : from->second), std::string(name),
                        known == nullptr ? std::string() : known->text(),
                        given == nullptr ? std::string() : given->text()});
}

[[noreturn, gnu::cold]] PENSTOCK_INLINE void throw_conflict(const column_conflict& one) {
  if (one.second_type.empty())
    throw error(errc::format, {"the file has two columns called '", one.column,
                               "', and others have not, so that it is not known which is which"})
        .in_file(one.second);
  throw error(errc::format,
              {"the column '", one.column, "' is of type ", one.second_type, " in the file, and of type ",
               one.first_type, " in '", one.first,
               "', and no type holds the values of both without loss; name the files of one type, or only "
               "other columns"})
      .in_file(one.second);
}

PENSTOCK_INLINE void check_conflicts(std::span<const column_conflict> conflicts, std::string_view leaf) {
  const auto within = [](std::string_view name, std::string_view path) {
    return name == path || (name.starts_with(path) && name[path.size()] == '.');
  };
  for (const column_conflict& one : conflicts)
    if (within(leaf, one.column)) throw_conflict(one);
}

PENSTOCK_INLINE void check_conflicts(std::span<const column_conflict> conflicts,
                                     std::span<const std::string> leaves, const projection& used) {
  if (conflicts.empty()) return;
  for (const std::string& leaf : leaves)
    if (used.uses(leaf)) check_conflicts(conflicts, leaf);
}

}  // namespace penstock::inline v0_1::detail
