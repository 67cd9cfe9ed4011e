// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What is known of a dataset, and how it is printed.

#include "inspect_cells.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace inspection {

struct field_report {
  std::string name, type;
  std::set<std::string> kinds;  ///< of bytes, in the rows that were looked at
  std::size_t seen = 0, nulls = 0;
  bool nulls_inside = false;
  std::string codec, header;  ///< empty if no codec of the library reads it, or none is needed
  std::string note;
};

struct report {
  std::string path, format, described;
  std::uint64_t samples = 0;
  std::optional<std::uint64_t> shards, bytes;
  std::vector<field_report> fields;
  std::vector<std::vector<cell>> rows;
  std::size_t looked_at = 0;
  std::string failure;  ///< of the row that could not be read
  std::string undrawn;  ///< of pictures that the sheet could not have
  std::set<std::string> headers;
  std::string expression;
};

/// A C++ literal of a text, which is safe to print.
inline std::string literal(std::string_view text) {
  std::string made = "\"";
  constexpr char digits[] = "01234567";
  while (!text.empty()) {
    const std::size_t length = shown_character(text);
    if (text.front() == '"' || text.front() == '\\' || (text.front() == '?' && made.ends_with('?')))
      made.append(1, '\\').append(1, text.front());  // two question marks may begin a trigraph
    else if (length != 0)
      made.append(text.substr(0, length));
    else {  // octal, since a hexadecimal escape has no end
      const auto value = static_cast<unsigned char>(text.front());
      for (const int shift : {6, 3, 0})
        made.append(shift == 6 ? "\\" : "").append(1, digits[value >> shift & 7]);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return made + "\"";
}

inline std::string size_text(std::uint64_t bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

inline std::string count_text(std::uint64_t count, std::string_view what) {
  return std::to_string(count).append(" ").append(what).append(count == 1 ? "" : "s");
}

/// The name of a field for a terminal.
inline std::string safe_name(std::string_view name, std::size_t maximum = 64) {
  const std::string shown = safe_text(name, maximum);
  const bool plain = shown.size() == name.size() + 2 && !name.empty();
  return plain ? std::string(name) : shown;
}

inline void print_text(const report& all) {
  std::printf("%s: %s\n", safe_name(all.path, 4096).c_str(), all.format.c_str());
  std::printf("  %s", count_text(all.samples, "sample").c_str());
  if (all.shards) std::printf(", %s", count_text(*all.shards, "shard").c_str());
  if (all.bytes) std::printf(", %s", size_text(*all.bytes).c_str());
  if (all.bytes && all.samples != 0)
    std::printf(", %s a sample", size_text(*all.bytes / all.samples).c_str());
  std::printf("\n\nfields, by %zu rows:\n", all.looked_at);
  std::size_t width = 4;
  for (const field_report& one : all.fields) width = std::max(width, safe_name(one.name).size());
  for (const field_report& one : all.fields)
    std::printf("  %-*s  %s%s%s%s%s\n", static_cast<int>(width),
                one.name.empty() ? "-" : safe_name(one.name).c_str(), safe_name(one.type).c_str(),
                one.codec.empty() ? "" : "  ", one.codec.c_str(), one.note.empty() ? "" : "  # ",
                one.note.c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    std::printf("row %zu:\n", i);
    for (const cell& one : all.rows[i])
      std::printf("  %-*s  %s\n", static_cast<int>(width),
                  one.name.empty() ? "-" : safe_name(one.name).c_str(), one.text.c_str());
  }
  if (!all.failure.empty())
    std::printf("row %zu cannot be read: %s\n", all.looked_at, safe_message(all.failure).c_str());
  if (!all.undrawn.empty()) std::printf("%s\n", safe_message(all.undrawn).c_str());
  std::printf("\n");
  for (const std::string& header : all.headers) std::printf("#include <%s>\n", header.c_str());
  std::printf("namespace ps = penstock;\n%s\n", all.expression.c_str());
}

inline void print_json(const report& all) {
  nlohmann::json made{{"path", all.path},       {"format", all.format},
                      {"samples", all.samples}, {"expression", all.expression},
                      {"headers", all.headers}, {"looked_at", all.looked_at}};
  if (all.shards) made["shards"] = *all.shards;
  if (all.bytes) made["bytes"] = *all.bytes;
  if (!all.failure.empty()) made["failure"] = all.failure;
  if (!all.undrawn.empty()) made["undrawn"] = all.undrawn;
  made["fields"] = nlohmann::json::array();
  for (const field_report& one : all.fields)
    made["fields"].push_back({{"name", one.name},
                              {"type", one.type},
                              {"codec", one.codec},
                              {"note", one.note},
                              {"nulls", one.nulls}});
  made["rows"] = nlohmann::json::array();
  for (const auto& row : all.rows) {
    auto& shown = made["rows"].emplace_back(nlohmann::json::object());
    for (const cell& one : row) shown[one.name] = one.text;
  }
  std::printf("%s\n", made.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

}  // namespace inspection
