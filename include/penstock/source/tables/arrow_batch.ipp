// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/arrow_batch.hpp>

#include <penstock/core/half.hpp>
#include <penstock/source/tables/arrow_union.hpp>

#include <algorithm>
#include <concepts>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void arrow_member_value::check_codec(std::string_view) const {
  const arrow_cell found = cell();
  const arrow_type& type = found.type();
  const bool has_bytes = type.layout == arrow_layout::nothing || type.is_bytes() ||
                         (type.layout == arrow_layout::fixed && type.number == arrow_number::none);
  if (!has_bytes)
    throw error(errc::format,
                {"the column '", type.name, "' is of type ", type.text(),
                 ", which is no bytes: read it with arrow_value<T>, or arrays with arrow_array<T>"});
  if (found.is_null())
    throw error(errc::missing, {"the value of the column '", type.name,
                                "' is null: leave such samples out with bad_samples, or read it with "
                                "arrow_value<std::optional<bytes>>"});
}

PENSTOCK_INLINE bool reads_unchanged(const arrow_type& file, const arrow_type& wanted) noexcept {
  if (file.format == "n") return true;
  if (!file.dictionary.empty() && wanted.dictionary.empty())
    return reads_unchanged(file.dictionary.front(), wanted);
  const auto children = [](const arrow_type& own, const arrow_type& its, bool named) {
    if (own.children.size() != its.children.size()) return false;
    for (std::size_t i = 0; i < own.children.size(); ++i)
      if ((named && own.children[i].name != its.children[i].name) ||
          !reads_unchanged(own.children[i], its.children[i]))
        return false;
    return true;
  };
  if (file.is_bytes() && wanted.is_bytes()) return true;
  if (file.format == "+m" && wanted.format == "+m" && file.children.size() == 1 &&
      wanted.children.size() == 1)
    return children(file.children.front(), wanted.children.front(), false);
  if (file.is_list() && wanted.is_list()) return children(file, wanted, false);
  if (file.layout == arrow_layout::record && wanted.layout == arrow_layout::record)
    return children(file, wanted, true);
  // Zones, and the digits of decimals, make no difference to where a value lies.
  if (file.format.starts_with("ts") && wanted.format.starts_with("ts"))
    return file.format.substr(0, 3) == wanted.format.substr(0, 3);
  if (file.format.starts_with("d:") && wanted.format.starts_with("d:")) return file.width == wanted.width;
  return file.reads_like(wanted);
}

/// By what the numbers of a type are multiplied to count in another one's unit: days, or seconds and parts of
/// them.
PENSTOCK_INLINE std::int64_t arrow_time_factor(const arrow_type& file, const arrow_type& wanted) noexcept {
  const auto per_second = [](std::string_view format) -> std::int64_t {
    return format[2] == 's' ? 1 : format[2] == 'm' ? 1'000 : format[2] == 'u' ? 1'000'000 : 1'000'000'000;
  };
  if (!wanted.format.starts_with('t') || file.format == wanted.format) return 1;
  constexpr std::int64_t seconds_of_day = 86'400;
  return file.format == "tdD" ? seconds_of_day * per_second(wanted.format)
                              : per_second(wanted.format) / per_second(file.format);
}

[[noreturn, gnu::cold]] PENSTOCK_INLINE void time_out_of_range(const arrow_type& file,
                                                               const arrow_type& wanted, std::int64_t value) {
  throw error(errc::format,
              {"the column '", wanted.name, "' has a value of ", value, " of type ", file.text(),
               ", which is out of the range of ", wanted.text(), ", the type that it has in other files"});
}

/// A number of a cell as one of a wider type.
template <class T>
T widened_number(const arrow_cell& cell, const arrow_type& wanted, std::int64_t factor) {
  if constexpr (std::integral<T>) {
    const arrow_whole whole = whole_arrow_number(cell);
    if (factor == 1) return static_cast<T>(whole.bits);
    std::int64_t made = 0;
    if (__builtin_mul_overflow(static_cast<std::int64_t>(whole.bits), factor, &made) ||
        !std::in_range<T>(made))
      time_out_of_range(cell.type(), wanted, static_cast<std::int64_t>(whole.bits));
    return static_cast<T>(made);
  } else {
    double value = 0;
    if (is_real(cell.type().number)) {
      value = real_arrow_number(cell, sizeof(double));
    } else {
      const arrow_whole whole = whole_arrow_number(cell);
      value = whole.negative ? static_cast<double>(static_cast<std::int64_t>(whole.bits))
                             : static_cast<double>(whole.bits);
    }
    if constexpr (std::same_as<T, half>)
      return half(static_cast<float>(value));
    else
      return static_cast<T>(value);
  }
}

/// Writes a value for each row of a column with `write(cell, place)`, zeros where it is null.
template <class Write>
arrow_column widened_values(const arrow_column& column, const arrow_type& wanted, std::vector<buffer>& owned,
                            const Write& write) {
  arrow_column made;
  made.type = &wanted;
  made.length = column.length;
  const std::size_t rows = to_size(column.length), width = to_size(wanted.width);
  buffer values(rows * width), valid;
  const bool may_be_null = column.validity != nullptr || !column.type->dictionary.empty();
  if (may_be_null) {
    valid.resize_for_overwrite(rows / 8 + 1);
    std::ranges::fill(valid.span(), std::byte{0xff});
  }
  for (std::size_t i = 0; i < rows; ++i) {
    std::byte* const place = values.data() + i * width;
    const arrow_cell cell(column, i);
    if (!cell.is_null()) {
      write(cell, place);
      continue;
    }
    std::memset(place, 0, width);
    valid.data()[i / 8] &= ~(std::byte{1} << (i % 8));
  }
  made.values = values.data();
  if (may_be_null) made.validity = valid.data();
  owned.push_back(std::move(values));
  if (may_be_null) owned.push_back(std::move(valid));
  return made;
}

template <class T>
arrow_column widened_numbers(const arrow_column& column, const arrow_type& wanted,
                             std::vector<buffer>& owned) {
  const arrow_type& file = column.type->dictionary.empty() ? *column.type : column.type->dictionary.front();
  const std::int64_t factor = arrow_time_factor(file, wanted);
  return widened_values(column, wanted, owned, [&](const arrow_cell& cell, std::byte* place) {
    const T value = widened_number<T>(cell, wanted, factor);
    std::memcpy(place, &value, sizeof(T));
  });
}

PENSTOCK_INLINE arrow_column widened_flat(const arrow_column& column, const arrow_type& wanted,
                                          std::vector<buffer>& owned) {
  if (wanted.number == arrow_number::float16) return widened_numbers<half>(column, wanted, owned);
  if (wanted.number == arrow_number::float32) return widened_numbers<float>(column, wanted, owned);
  if (wanted.number == arrow_number::float64) return widened_numbers<double>(column, wanted, owned);
  return with_whole_number(
      wanted.number, [&]<class T>(T) { return widened_numbers<T>(column, wanted, owned); },
      [&] {
        // Decimals of more bytes: little-endian, of two's complement.
        return widened_values(column, wanted, owned, [&](const arrow_cell& cell, std::byte* place) {
          const bytes_view given = cell.bytes();
          const bool negative = (given.back() & std::byte{0x80}) != std::byte{};
          std::memset(place, negative ? 0xff : 0, to_size(wanted.width));
          std::memcpy(place, given.data(), given.size());
        });
      });
}

PENSTOCK_INLINE arrow_column lacking_column(std::uint64_t rows) {
  static const arrow_type nothing = arrow_type::of_format("n");
  arrow_column made;
  made.type = &nothing;
  made.length = rows;
  return made;
}

PENSTOCK_INLINE arrow_column widened(const arrow_column& column, const arrow_type& wanted,
                                     std::vector<buffer>& owned) {
  const arrow_type& file = *column.type;
  if (reads_unchanged(file, wanted)) return column;
  if (wanted.children.empty() || !file.dictionary.empty()) return widened_flat(column, wanted, owned);
  arrow_column made = column;
  if (file.layout == wanted.layout && file.width == wanted.width) made.type = &wanted;
  if (file.format == "+m") {
    const arrow_type& entry = wanted.children.front();
    arrow_column& fields = made.children.front();
    fields.type = &entry;
    for (std::size_t i = 0; i < fields.children.size(); ++i)
      fields.children[i] = widened(column.children.front().children[i], entry.children[i], owned);
  } else if (file.layout == arrow_layout::record) {
    made.children.clear();
    for (const arrow_type& field : wanted.children) {
      const auto at = std::ranges::find(file.children, field.name, &arrow_type::name);
      made.children.push_back(
          at == file.children.end()
              ? lacking_column(column.offset + column.length)
              : widened(column.children[static_cast<std::size_t>(at - file.children.begin())], field, owned));
    }
  } else {
    made.children.front() = widened(column.children.front(), wanted.children.front(), owned);
  }
  return made;
}

PENSTOCK_INLINE void widen_leaf(arrow_batch& batch, arrow_leaf& leaf, const arrow_type& wanted) {
  if (reads_unchanged(*leaf.column->type, wanted)) return;
  batch.widened.push_back(std::make_unique<arrow_column>(widened(*leaf.column, wanted, batch.owned)));
  leaf = arrow_leaf_of(*batch.widened.back(), leaf);
}

PENSTOCK_INLINE arrow_leaf lacking_leaf(arrow_batch& batch, std::string_view path, std::uint64_t rows) {
  batch.types.push_back(std::make_unique<arrow_type>(arrow_type::of_format("n")));
  batch.types.back()->name = path.substr(path.rfind('.') + 1);
  batch.widened.push_back(std::make_unique<arrow_column>(lacking_column(rows)));
  batch.widened.back()->type = batch.types.back().get();
  return arrow_leaf_of(*batch.widened.back(), {});
}

}  // namespace penstock::inline v0_1::detail
