// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/table_facts.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::size_t numbers_of(const arrow_type& column) noexcept {
  std::size_t count = 1;
  if (column.dictionary.empty())
    for (const arrow_type& child : column.children) count += numbers_of(child);
  return count;
}

// Both sets of numbers begin with those of the first child. What lists, maps and their entries consist of has
// places, and names without a meaning.
PENSTOCK_INLINE void name_by_numbers(arrow_type& file, std::span<const int> ids, const arrow_type& known,
                                     std::span<const int> known_ids, bool by_number = true) {
  for (std::size_t i = 0; i < file.children.size(); ++i) {
    arrow_type& child = file.children[i];
    const std::size_t count = std::min(numbers_of(child), ids.size());
    const std::span<const int> mine = ids.first(count);
    ids = ids.subspan(count);
    std::span<const int> theirs = known_ids;
    std::size_t found = 0;
    const auto is_it = [&] {
      if (!by_number) return found == i;
      return !mine.empty() && mine.front() >= 0 && theirs.front() == mine.front();
    };
    while (found < known.children.size() && !theirs.empty() && !is_it())
      theirs = theirs.subspan(std::min(numbers_of(known.children[found++]), theirs.size()));
    // What the table does not have any more must not be taken for something else.
    if (found == known.children.size() || theirs.empty()) {
      child.name = '\0' + child.name;
      continue;
    }
    const arrow_type& same = known.children[found];
    child.name = same.name;
    if (!mine.empty() && child.dictionary.empty() && same.dictionary.empty())
      name_by_numbers(
          child, mine.subspan(1), same, theirs.subspan(1),
          child.layout == arrow_layout::record && same.layout == arrow_layout::record && file.format != "+m");
  }
}

// The numbers of what a type consists of, by its names in the file.
PENSTOCK_INLINE void number_by_names(const arrow_type& file, const std::vector<stored_name>& names,
                                     std::vector<int>& into, bool is_entry = false) {
  if (!file.dictionary.empty()) return;
  for (std::size_t i = 0; i < file.children.size(); ++i) {
    const arrow_type& child = file.children[i];
    if (file.format == "+m") {
      into.push_back(-1);
      number_by_names(child, names, into, true);
      continue;
    }
    const std::string_view called = is_entry                              ? (i == 0 ? "key" : "value")
                                    : file.layout == arrow_layout::record ? std::string_view(child.name)
                                                                          : "element";
    const auto found = std::ranges::find_if(names, [&](const stored_name& one) {
      return std::ranges::find(one.names, called) != one.names.end();
    });
    into.push_back(found == names.end() ? -1 : found->number);
    number_by_names(child, found == names.end() ? std::vector<stored_name>() : found->fields, into);
  }
}

// Fields of structs, also in lists and maps, whose other children have names without a meaning.
PENSTOCK_INLINE void name_fields(const arrow_type& table, const arrow_type& stored, arrow_type& file) {
  if (table.children.size() != stored.children.size()) return;
  const bool by_name = table.layout == arrow_layout::record && file.layout == arrow_layout::record;
  for (std::size_t i = 0; i < file.children.size(); ++i) {
    std::size_t found = i;
    if (by_name)
      found = static_cast<std::size_t>(
          std::ranges::find(stored.children, file.children[i].name, &arrow_type::name) -
          stored.children.begin());
    std::string& name = file.children[i].name;
    if (found < table.children.size()) {
      name_fields(table.children[found], stored.children[found], file.children[i]);
      name = table.children[found].name;
    } else {
      name = '\0' + name;
    }
  }
}

PENSTOCK_INLINE void name_as_in_table(const table_facts& table, arrow_type& file, std::span<const int> ids) {
  const std::vector<arrow_type>& columns = table.schema.children;
  const bool has_ids = !table.field_ids.empty() && std::ranges::any_of(ids, [](int one) { return one >= 0; });
  if (has_ids && table.stored_types.empty()) return name_by_numbers(file, ids, table.schema, table.field_ids);
  if (!has_ids && table.names) {
    std::vector<int> found;
    number_by_names(file, *table.names, found);
    return name_by_numbers(file, found, table.schema, table.field_ids);
  }
  for (arrow_type& column : file.children) {
    const std::size_t count = std::min(numbers_of(column), ids.size());
    const int id = count == 0 ? -1 : ids.front();
    ids = ids.subspan(count);
    std::size_t found = 0;
    const auto is_it = [&](std::size_t k) {
      if (has_ids) return id >= 0 && k < table.field_ids.size() && table.field_ids[k] == id;
      return k < table.stored_as.size() && !table.stored_as[k].empty()
                 ? std::ranges::find(table.stored_as[k], column.name) != table.stored_as[k].end()
                 : columns[k].name == column.name;
    };
    while (found < columns.size() && !is_it(found)) ++found;
    if (found < table.stored_types.size()) name_fields(columns[found], table.stored_types[found], column);
    // A column that the table does not have any more must not be taken for another one.
    column.name = found < columns.size() ? columns[found].name : '\0' + column.name;
  }
}

PENSTOCK_INLINE std::optional<decimal_digits> digits_of_decimal(const arrow_type& type) noexcept {
  if (!type.format.starts_with("d:")) return std::nullopt;
  decimal_digits made;
  const char *const first = type.format.data() + 2, *const end = type.format.data() + type.format.size();
  const auto [comma, failed] = std::from_chars(first, end, made.all);
  if (failed != std::errc{} || comma == end || *comma != ',') return std::nullopt;
  if (std::from_chars(comma + 1, end, made.behind).ec != std::errc{}) return std::nullopt;
  return made;
}

// Of decimals, and of whole numbers, which have no digits behind the point.
PENSTOCK_INLINE table_fit fit_in_decimal(const arrow_type& file, const arrow_type& table) noexcept {
  const auto wanted = digits_of_decimal(table);
  auto digits = digits_of_decimal(file);
  if (!wanted) return table_fit::none;
  if (digits && digits->behind == wanted->behind && file.width == table.width) return table_fit::as_they_are;
  constexpr std::array<std::pair<std::string_view, int>, 4> whole{{{"c", 3}, {"s", 5}, {"i", 10}, {"l", 19}}};
  for (const auto& [format, count] : whole)
    if (file.format == format) digits = decimal_digits{count, 0};
  const bool holds = digits && wanted->behind >= digits->behind &&
                     wanted->all - wanted->behind >= digits->all - digits->behind;
  return holds ? table_fit::converted : table_fit::none;
}

// `inside` a list or a map.
PENSTOCK_INLINE table_fit fit_of_type(const arrow_type& file, const arrow_type& table, bool inside) noexcept {
  const auto if_plain = [](table_fit fit) { return fit == table_fit::as_they_are ? fit : table_fit::none; };
  if (!file.dictionary.empty()) return if_plain(fit_of_type(file.dictionary.front(), table, inside));
  if (!table.dictionary.empty()) return if_plain(fit_of_type(file, table.dictionary.front(), inside));
  if (file.layout == arrow_layout::nothing && !inside) return table_fit::as_they_are;  // all are null
  constexpr std::string_view whole = "csilCSIL", real = "efg";
  const auto is = [](const arrow_type& type, std::string_view kinds) {
    return type.format.size() == 1 && kinds.find(type.format) != kinds.npos;
  };
  const auto either = [](bool as_they_are, table_fit other) {
    return as_they_are ? table_fit::as_they_are : other;
  };
  if (is(file, whole) && is(table, whole))
    return either(!inside || file.width >= table.width, table_fit::converted);
  if (is(file, real) && is(table, real))
    return either(!inside || !is(file, "f") || !is(table, "g"), table_fit::converted);
  if (is(file, whole) && is(table, "g"))
    return file.width <= sizeof(std::int32_t) ? table_fit::converted : table_fit::none;
  if (table.format.starts_with("d:")) return fit_in_decimal(file, table);
  // Time zones make no difference to the number, but to a day.
  if (table.format.starts_with("ts") && file.format.starts_with("ts"))
    return either(file.format.substr(0, 3) == table.format.substr(0, 3), table_fit::none);
  if (table.format.starts_with("ts") && table.format.ends_with(':') && file.format == "tdD")
    return table_fit::converted;
  if (file.is_bytes() && table.is_bytes()) return table_fit::as_they_are;
  const auto of_children = [](const arrow_type& a, const arrow_type& b, bool named) {
    if (a.children.size() != b.children.size()) return table_fit::none;
    table_fit all = table_fit::as_they_are;
    for (std::size_t i = 0; i < a.children.size(); ++i) {
      const table_fit one = fit_of_type(a.children[i], b.children[i], true);
      if (one == table_fit::none || (named && a.children[i].name != b.children[i].name))
        return table_fit::none;
      all = std::max(all, one);
    }
    return all;
  };
  const auto is_list = [](const arrow_type& type) {
    return (type.layout == arrow_layout::list32 || type.layout == arrow_layout::list64 ||
            type.layout == arrow_layout::fixed_list) &&
           type.format != "+m";
  };
  if (is_list(file) && is_list(table)) return of_children(file, table, false);
  // The entry of a map is a struct whose fields may have any names.
  if (file.format == "+m" && table.format == "+m" && file.children.size() == 1 && table.children.size() == 1)
    return of_children(file.children.front(), table.children.front(), false);
  if (file.layout == arrow_layout::record && table.layout == arrow_layout::record)
    return of_children(file, table, true);
  return either(file.reads_like(table), table_fit::none);
}

PENSTOCK_INLINE table_fit fit_in_table(const arrow_type& file, const arrow_type& table) noexcept {
  return fit_of_type(file, table, false);
}

}  // namespace penstock::inline v0_1::detail
