// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/tables/iceberg_schema.hpp needs nlohmann-json: link penstock::arrow"
#endif

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/json_description.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A type, and the numbers of what it consists of, depth first, of which parquet_files has need; -1 for none.
struct iceberg_type {
  arrow_type type;
  std::vector<int> numbers;
};

/// The type that a schema calls so: "decimal(9, 2)", "fixed[16]", "timestamptz". Throws errc::argument for
/// one that is not known.
[[nodiscard]] inline arrow_type iceberg_plain_type(const std::string& called) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> known{
      {{"boolean", "b"},
       {"int", "i"},
       {"long", "l"},
       {"float", "f"},
       {"double", "g"},
       {"date", "tdD"},
       {"time", "ttu"},
       {"timestamp", "tsu:"},
       {"timestamptz", "tsu:UTC"},
       {"timestamp_ns", "tsn:"},
       {"timestamptz_ns", "tsn:UTC"},
       {"string", "u"},
       {"uuid", "w:16"},
       {"binary", "z"},
       {"unknown", "n"}}};
  for (const auto& [iceberg, arrow] : known)
    if (called == iceberg) return arrow_type::of_format(arrow);
  std::string format;
  if (called.starts_with("decimal(") && called.ends_with(')')) format = "d:" + called.substr(8);
  if (called.starts_with("fixed[") && called.ends_with(']')) format = "w:" + called.substr(6);
  if (!format.empty()) {
    format.pop_back();
    std::erase(format, ' ');
    arrow_type made = arrow_type::of_format(format);
    if (made.layout == arrow_layout::fixed) return made;
  }
  throw error(errc::argument, {"a column has the type '", called, "' of Iceberg, which is not known here"});
}

/// A type as the metadata have it.
[[nodiscard]] inline iceberg_type iceberg_type_of(const nlohmann::json& said, int level = 0) {
  constexpr int max_levels = 64;
  if (level == max_levels)
    throw error(errc::limit, {"the table's schema has more than ", max_levels, " levels"});
  if (!said.is_object()) return {iceberg_plain_type(said.get<std::string>()), {}};
  const auto kind = said.at("type").get<std::string>();
  iceberg_type made;
  const auto inner = [&](const char* which) {
    iceberg_type one = iceberg_type_of(said.at(which), level + 1);
    one.type.name = which;
    made.numbers.push_back(number_at<int>(said, (std::string(which) + "-id").c_str()));
    made.numbers.insert(made.numbers.end(), one.numbers.begin(), one.numbers.end());
    return std::move(one.type);
  };
  if (kind == "struct") {
    made.type = arrow_type::of_format("+s");
    for (const nlohmann::json& field : said.at("fields")) {
      if (field.contains("initial-default") && !field["initial-default"].is_null())
        throw error(errc::argument, {"the column '", field.at("name").get<std::string>(),
                                     "' has a default value, of format version 3, which is not read here"});
      iceberg_type one = iceberg_type_of(field.at("type"), level + 1);
      one.type.name = field.at("name").get<std::string>();
      made.type.children.push_back(std::move(one.type));
      made.numbers.push_back(number_at<int>(field, "id"));
      made.numbers.insert(made.numbers.end(), one.numbers.begin(), one.numbers.end());
    }
  } else if (kind == "list") {
    made.type = arrow_type::of_format("+l");
    made.type.children.push_back(inner("element"));
  } else if (kind == "map") {
    arrow_type entry = arrow_type::of_format("+s");
    made.numbers.push_back(-1);
    entry.children.push_back(inner("key"));
    entry.children.push_back(inner("value"));
    made.type = arrow_type::of_format("+m");
    made.type.children = {std::move(entry)};
  } else {
    throw error(errc::argument, {"a column has the type '", kind, "' of Iceberg, which is not known here"});
  }
  return made;
}

/// A field of a partition spec.
struct iceberg_part {
  int source = 0;  // the column's number
  int number = 0;  // its own
  std::string name, transform;
};

}  // namespace penstock::inline v0_1::detail
