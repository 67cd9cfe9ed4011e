// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/half.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/oracle_files.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock_test {

/// Arrow files that pyarrow has written, and what it reads from them: `x` and `x.expected`.
inline constexpr oracle_file arrow_oracles[] = {
#include "source/oracles/arrow.inc"
};

/// One of them.
[[nodiscard]] inline std::string_view arrow_oracle(std::string_view name) {
  for (const oracle_file& one : arrow_oracles)
    if (one.path == name) return one.bytes;
  throw penstock::error(penstock::errc::argument, "there is no such file");
}

inline void add_hex(std::string& line, penstock::bytes_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::byte one : bytes) {
    line += digits[std::to_integer<std::size_t>(one) >> 4];
    line += digits[std::to_integer<std::size_t>(one) & 15];
  }
}

/// A value as tools/arrow_oracles.py prints it.
inline void add_cell(std::string& line, const penstock::arrow_cell& cell) {
  using penstock::arrow_layout;
  using penstock::arrow_number;
  const penstock::arrow_type& type = cell.type();
  if (type.layout == arrow_layout::other || type.layout == arrow_layout::record) {
    line += '?';
    return;
  }
  if (cell.is_null()) {
    line += "null";
    return;
  }
  const auto real = [&](double value) {
    if (std::isnan(value)) {
      line += "nan";
      return;
    }
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int i = 7; i >= 0; --i) {
      const auto byte = static_cast<std::byte>(bits >> (8 * i));
      add_hex(line, {&byte, 1});
    }
  };
  switch (type.number) {
    case arrow_number::int8:
      line += std::to_string(cell.number<std::int8_t>());
      return;
    case arrow_number::int16:
      line += std::to_string(cell.number<std::int16_t>());
      return;
    case arrow_number::int32:
      line += std::to_string(cell.number<std::int32_t>());
      return;
    case arrow_number::int64:
      line += std::to_string(cell.number<std::int64_t>());
      return;
    case arrow_number::uint8:
      line += std::to_string(cell.number<std::uint8_t>());
      return;
    case arrow_number::uint16:
      line += std::to_string(cell.number<std::uint16_t>());
      return;
    case arrow_number::uint32:
      line += std::to_string(cell.number<std::uint32_t>());
      return;
    case arrow_number::uint64:
      line += std::to_string(cell.number<std::uint64_t>());
      return;
    case arrow_number::float16:
      return real(static_cast<double>(static_cast<float>(cell.number<penstock::half>())));
    case arrow_number::float32:
      return real(static_cast<double>(cell.number<float>()));
    case arrow_number::float64:
      return real(cell.number<double>());
    case arrow_number::none:
      break;
  }
  switch (type.layout) {
    case arrow_layout::bits:
      line += cell.bit() ? "true" : "false";
      return;
    case arrow_layout::fixed:
      line += 'x';
      return add_hex(line, cell.bytes());
    case arrow_layout::bytes32:
    case arrow_layout::bytes64:
    case arrow_layout::views:
      line += '"';
      add_hex(line, cell.bytes());
      line += '"';
      return;
    default: {
      const penstock::arrow_slice values = cell.list();
      line += '[';
      for (std::uint64_t i = 0; i < values.count; ++i) {
        if (i != 0) line += ',';
        if (i == 100'000) throw penstock::error(penstock::errc::limit, "a list is too long to print");
        add_cell(line, {*values.column, values.first + i});
      }
      line += ']';
    }
  }
}

/// A row as tools/arrow_oracles.py prints it: a stage for `map`.
inline constexpr auto arrow_row_text = [](const auto& row) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) line += '\t';
    add_cell(line, row.member(i).cell());
  }
  return line;
};

/// The names of a source's columns, and its rows, as tools/arrow_oracles.py prints them.
template <class Source>
[[nodiscard]] std::string arrow_rows_text(const Source& source, std::size_t workers = 0) {
  std::string all;
  const auto names = penstock::detail::arrow_leaf_names(source.schema());
  for (std::size_t i = 0; i < names.size(); ++i) all.append(i == 0 ? "" : "\t").append(names[i]);
  all += '\n';
  auto run = (source | penstock::map(arrow_row_text) | penstock::workers(workers)).open();
  for (const auto& row : run) all.append(row).append("\n");
  return all;
}

}  // namespace penstock_test
