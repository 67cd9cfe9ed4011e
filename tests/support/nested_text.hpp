// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/arrow_value.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/run/run.hpp>
#include <penstock/stage/cells.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/format_peers.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace penstock_test {

/// A value of any depth, as format_peers.py prints it. `lacking`: without what is null in structs, which then
/// are in the order of their names.
[[nodiscard]] inline std::string nested_text(const penstock::arrow_cell& cell, bool lacking = false) {
  using penstock::arrow_layout;
  const penstock::arrow_type& type = cell.type();
  if (cell.is_null()) return "null";
  if (type.layout == arrow_layout::bits) return cell.as<bool>() ? "true" : "false";
  if (type.format == "e" || type.format == "f" || type.format == "g") return real_text(cell.as<double>());
  if (type.format == "L") return std::to_string(cell.as<std::uint64_t>());
  if (type.number != penstock::arrow_number::none) return std::to_string(cell.as<std::int64_t>());
  std::string made;
  if (type.layout == arrow_layout::record) {
    std::vector<std::string> fields;
    for (std::size_t i = 0; i < type.children.size(); ++i)
      if (const penstock::arrow_cell one = cell.field(i); !lacking || !one.is_null())
        fields.push_back(type.children[i].name + ":" + nested_text(one, lacking));
    if (lacking) std::ranges::sort(fields);
    for (const std::string& one : fields) made += (made.empty() ? "" : ",") + one;
    return "{" + made + "}";
  }
  if (!type.is_list()) return quoted_hex(cell.as<penstock::bytes>());
  const bool is_map = type.format == "+m";
  for (const penstock::arrow_cell one : cell.list()) {
    if (!made.empty()) made += ',';
    made += is_map ? nested_text(one.field(0), lacking) + "=" + nested_text(one.field(1), lacking)
                   : nested_text(one, lacking);
  }
  return is_map && !lacking ? "<" + made + ">" : "[" + made + "]";
}

/// The rows of a source, with tabs between the columns, which are read in the order of these names.
template <class Source>
[[nodiscard]] std::string nested_rows(const Source& source, const std::vector<std::string>& names,
                                      std::size_t workers = 0, bool lacking = false) {
  std::string all;
  const auto line_of = [&](const auto& row) {
    std::string line;
    for (const std::string& name : names) {
      if (&name != &names.front()) line += '\t';
      bool there = false;
      for (std::size_t i = 0; i < row.size(); ++i) there = there || row.name(i) == name;
      line += there ? nested_text(row[name], lacking) : std::string("null");
    }
    return line;
  };
  auto run = (source | penstock::cells() | penstock::map(line_of) | penstock::workers(workers)).open();
  for (const auto& row : run) all.append(row).append("\n");
  return all;
}

}  // namespace penstock_test
