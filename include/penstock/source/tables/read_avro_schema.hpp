// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/tables/avro_schema.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::detail {

struct avro_schema_maker {
  avro_schema& made;
  std::map<std::string, std::size_t, std::less<>> named = {};

  [[noreturn, gnu::cold]] static void fail(std::string_view what) {
    throw error(errc::format, {"the schema of Avro has ", what, ": the file is damaged"});
  }
  [[nodiscard]] static const nlohmann::json* find(const nlohmann::json& object, const char* name) {
    const auto found = object.find(name);  // the end for what is no object
    return found == object.end() ? nullptr : &*found;
  }
  [[nodiscard]] static std::optional<avro_kind> plain(std::string_view name) noexcept {
    constexpr std::array<std::pair<std::string_view, avro_kind>, 8> known{{{"null", avro_kind::null},
                                                                           {"boolean", avro_kind::boolean},
                                                                           {"int", avro_kind::int32},
                                                                           {"long", avro_kind::int64},
                                                                           {"float", avro_kind::float32},
                                                                           {"double", avro_kind::float64},
                                                                           {"bytes", avro_kind::bytes},
                                                                           {"string", avro_kind::string}}};
    for (const auto& [called, kind] : known)
      if (called == name) return kind;
    return std::nullopt;
  }
  [[nodiscard]] static std::string full_name(std::string_view name, std::string_view space) {
    if (space.empty() || name.find('.') != std::string_view::npos) return std::string(name);
    return text({space, ".", name});
  }
  [[nodiscard]] static std::string text_of(const nlohmann::json& object, const char* name) {
    const nlohmann::json* const found = find(object, name);
    return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
  }
  // -1 if the object does not have it.
  [[nodiscard]] static std::int64_t number_of(const nlohmann::json& object, const char* name) {
    const nlohmann::json* const found = find(object, name);
    if (found == nullptr) return -1;
    constexpr std::uint64_t maximum = std::numeric_limits<std::int64_t>::max();
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > maximum)
      fail(text({"'", name, "' that is no number from 0 on"}));
    return found->get<std::int64_t>();
  }
  [[nodiscard]] std::size_t add(avro_kind kind) {
    made.types.emplace_back().kind = kind;
    return made.types.size() - 1;
  }

  // The number of a type; `space` is the namespace around it.
  [[nodiscard]] std::size_t type(const nlohmann::json& said, std::string_view space) {
    if (said.is_string()) {
      const auto name = said.get<std::string>();
      if (const auto kind = plain(name)) return add(*kind);
      const auto found = named.find(full_name(name, space));
      if (found == named.end()) fail(text({"the type '", name, "', which it does not define"}));
      return found->second;
    }
    if (said.is_array()) {
      const std::size_t number = add(avro_kind::one_of);
      for (const nlohmann::json& one : said) add_field(number, {}, -1, one, space);
      return number;
    }
    const nlohmann::json* const what = find(said, "type");
    if (what == nullptr) fail("a type that is none");
    if (!what->is_string()) return type(*what, space);
    const auto kind = what->get<std::string>();
    if (kind == "array" || kind == "map") {
      const nlohmann::json* const item = find(said, kind == "array" ? "items" : "values");
      if (item == nullptr) fail("an array or a map of nothing");
      const std::size_t number = add(kind == "array" ? avro_kind::array : avro_kind::map);
      add_field(number, {}, -1, *item, space);
      return number;
    }
    const bool is_record = kind == "record" || kind == "error";
    if (!is_record && kind != "enum" && kind != "fixed") return type(*what, space);
    const std::size_t number = add(is_record        ? avro_kind::record
                                   : kind == "enum" ? avro_kind::enumeration
                                                    : avro_kind::fixed);
    const std::string name = text_of(said, "name"), own = text_of(said, "namespace");
    std::string full = full_name(name, own.empty() ? space : own);
    const std::size_t dot = full.rfind('.');
    const std::string inner(full, 0, dot == full.npos ? 0 : dot);
    named.emplace(std::move(full), number);
    if (kind == "fixed") {
      const std::int64_t size = number_of(said, "size");
      if (size < 0) fail("a fixed type without a size");
      made.types[number].size = static_cast<std::uint64_t>(size);
    }
    if (!is_record) return number;
    const nlohmann::json* const fields = find(said, "fields");
    if (fields == nullptr || !fields->is_array()) fail("a record without fields");
    for (const nlohmann::json& field : *fields) {
      const nlohmann::json* const of_field = find(field, "type");
      if (of_field == nullptr) fail("a field without a type");
      add_field(number, text_of(field, "name"), number_of(field, "field-id"), *of_field, inner);
    }
    return number;
  }
  void add_field(std::size_t to, std::string name, std::int64_t id, const nlohmann::json& said,
                 std::string_view space) {
    const std::size_t its = type(said, space);
    made.types[to].fields.push_back({std::move(name), id, its});
  }
};

/// Reads a schema of Avro. Throws errc::format for a text that is none, with the offset if it is no JSON, and
/// errc::limit for one of more than a MiB.
///
/// Source: Apache Avro 1.12, "Specification", "Schema Declaration".
[[nodiscard]] inline avro_schema read_avro_schema(std::string_view json) {
  constexpr std::size_t maximum = std::size_t{1} << 20;
  constexpr int levels = 64;
  if (json.size() > maximum)
    throw error(errc::limit, {"the schema of Avro has ", json.size(), " bytes; ", maximum, " is the limit"});
  avro_schema made;
  made.root = avro_schema_maker{made}.type(parse_description(json, levels), {});
  return made;
}

}  // namespace penstock::inline v0_1::detail
