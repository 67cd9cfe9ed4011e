// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/tables/deletion_vector.hpp>
#include <penstock/source/tables/hive_path.hpp>
#include <penstock/source/tables/table_facts.hpp>
#include <penstock/source/tables/table_objects.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <system_error>

namespace penstock::inline v0_1::detail {

/// JSON of a log; of `value_t::discarded` if it is none, or so deeply nested that it is no log's.
[[nodiscard]] inline nlohmann::json delta_json(std::string_view text) {
  using nlohmann::json;
  bool deep = false;
  const auto shallow = [&](int depth, json::parse_event_t event, const json&) {
    constexpr int maximum = 200;
    const bool opens =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    deep = deep || (opens && depth >= maximum);
    return !deep;
  };
  json made = json::parse(text, shallow, false);
  return deep ? json(json::value_t::discarded) : made;
}

/// Calls `work(action)` for the lines of a file of the log, in their order, until it returns false; returns
/// whether it never did. Errors, its own too, name the file.
template <class Work>
bool delta_lines(const std::string& path, std::string_view all, Work&& work) {
  for (std::uint64_t number = 1; !all.empty(); ++number) {
    const std::string_view line = all.substr(0, all.find('\n'));
    all.remove_prefix(std::min(line.size() + 1, all.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const nlohmann::json action = delta_json(line);
    if (!action.is_object())
      throw error(errc::format, {"line ", number, " of the log is no object of JSON that can be read"})
          .in_file(path);
    const bool goes_on = in_file(path, [&]() -> bool {
      try {
        return work(action);
      } catch (const nlohmann::json::exception& e) {
        throw error(errc::format, {"line ", number, " of the log is not as Delta writes it: ", e.what()});
      }
    });
    if (!goes_on) return false;
  }
  return true;
}

/// The name of an action's file, whose path Delta writes with some characters as `%20`: in the table's
/// folder, or a name of its own in the same file system.
[[nodiscard]] inline std::string delta_path(const std::string& folder, std::string_view written) {
  const std::string name = name_of_uri(written);
  const std::string_view scheme = scheme_of_uri(name);
  if (!scheme.empty() && scheme != scheme_of_uri(folder))
    throw error(errc::argument,
                {"the table has the file '", written,
                 "' of another file system; read it with parquet and a storage of that system"})
        .in_file(folder);
  if (is_web_name(name)) return name;  // as the storage has it
  std::string path = hive_text(name);
  return !scheme.empty() || path.starts_with('/') ? path : name_in_folder(folder, path);
}

/// Microseconds since 1970 of "2024-03-31 10:00:00.123456", perhaps with a T and a Z; none for other texts.
[[nodiscard]] inline std::optional<std::int64_t> delta_time(std::string_view text) {
  if (text.ends_with('Z')) text.remove_suffix(1);
  constexpr std::size_t date = 10, whole = 19;
  if (text.size() < whole || (text[date] != ' ' && text[date] != 'T')) return std::nullopt;
  const auto day = days_of_date(text.substr(0, date));
  std::array<int, 3> parts{};
  for (std::size_t i = 0; i < 3; ++i) {
    const char* const at = text.data() + date + 1 + 3 * i;
    const bool digits = at[0] >= '0' && at[0] <= '9';  // and not a sign
    if (!digits || std::from_chars(at, at + 2, parts[i]).ptr != at + 2 || parts[i] > (i == 0 ? 23 : 59) ||
        (i != 2 && at[2] != ':'))
      return std::nullopt;
  }
  std::int64_t micros = 0;
  if (text.size() > whole) {
    std::string digits(text.substr(whole + 1));
    if (text[whole] != '.' || digits.empty() || digits.size() > 9) return std::nullopt;
    digits.resize(6, '0');
    const char* const end = digits.data() + digits.size();
    if (std::from_chars(digits.data(), end, micros).ptr != end) return std::nullopt;
  }
  if (!day) return std::nullopt;
  return ((*day * 24 + parts[0]) * 3600 + parts[1] * 60 + parts[2]) * 1'000'000 + micros;
}

/// The type of a column, as a schema has it.
[[nodiscard]] inline arrow_type delta_type(const nlohmann::json& said, std::string name, bool physical) {
  const auto named = [&](arrow_type made) {
    made.name = std::move(name);
    return made;
  };
  if (said.is_object()) {
    const auto kind = said.at("type").get<std::string>();
    if (kind == "struct") {
      arrow_type made = arrow_type::of_format("+s");
      for (const nlohmann::json& field : said.at("fields")) {
        auto called = field.at("name").get<std::string>();
        if (physical && field.contains("metadata") &&
            field["metadata"].contains("delta.columnMapping.physicalName"))
          called = field["metadata"]["delta.columnMapping.physicalName"].get<std::string>();
        made.children.push_back(delta_type(field.at("type"), std::move(called), physical));
      }
      return named(std::move(made));
    }
    arrow_type made = arrow_type::of_format(kind == "map" ? "+m" : "+l");
    if (kind == "array") made.children.push_back(delta_type(said.at("elementType"), "element", physical));
    if (kind == "map") {
      arrow_type entry = arrow_type::of_format("+s");
      entry.children = {delta_type(said.at("keyType"), "key", physical),
                        delta_type(said.at("valueType"), "value", physical)};
      made.children.push_back(std::move(entry));
    }
    return named(std::move(made));
  }
  const auto kind = said.get<std::string>();
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"string", "u"}, {"long", "l"},   {"integer", "i"},         {"short", "s"},
      {"byte", "c"},   {"float", "f"},  {"double", "g"},          {"boolean", "b"},
      {"binary", "z"}, {"date", "tdD"}, {"timestamp", "tsu:UTC"}, {"timestamp_ntz", "tsu:"},
      {"void", "n"},   {"null", "n"}};
  for (const auto& [delta, arrow] : known)
    if (kind == delta) return named(arrow_type::of_format(arrow));
  if (kind.starts_with("decimal(") && kind.ends_with(')'))
    return named(arrow_type::of_format("d:" + kind.substr(8, kind.size() - 9)));
  throw error(errc::format, {"the column '", name, "' has the type '", kind, "', which is none of Delta's"});
}

/// Whether a type, as a schema has it, is or has another one: "variant".
[[nodiscard]] inline bool delta_has_type(const nlohmann::json& said, std::string_view wanted) {
  if (said.is_string()) return said.get<std::string>() == wanted;
  if (!said.is_object()) return false;
  for (const char* const part : {"type", "elementType", "keyType", "valueType"})
    if (said.contains(part) && delta_has_type(said[part], wanted)) return true;
  const nlohmann::json fields = said.value("fields", nlohmann::json::array());
  return std::any_of(fields.begin(), fields.end(),
                     [&](const nlohmann::json& one) { return delta_has_type(one, wanted); });
}

/// The bytes of a partition's value of binary, which delta-rs writes as "\\u0001\\u00ff", with these
/// characters, and others as they are.
[[nodiscard]] inline std::string delta_bytes(const std::string& said) {
  constexpr std::size_t length = 6;
  std::string made;
  for (std::size_t at = 0; at < said.size(); at += length) {
    unsigned value = 0;
    const std::string_view one = std::string_view(said).substr(at, length);
    if (one.size() != length || !one.starts_with("\\u00") ||
        std::from_chars(one.data() + 4, one.data() + length, value, 16).ptr != one.data() + length)
      return said;
    made += static_cast<char>(value);
  }
  return made;
}

/// What the actions of a log have made of a table.
struct delta_state {
  struct file {
    std::string path;  // as it is written
    nlohmann::json values, deleted;
  };

  std::uint64_t version = 0;
  nlohmann::json metadata, protocol;
  std::map<std::string, file> files;  // by path and deletion vector
  std::vector<std::string> sidecars;

  [[nodiscard]] static bool knows(std::string_view action) noexcept {
    return action == "add" || action == "remove" || action == "metaData" || action == "protocol" ||
           action == "sidecar";
  }

  void apply(const nlohmann::json& action) {
    if (action.contains("metaData")) metadata = action["metaData"];
    if (action.contains("protocol")) protocol = action["protocol"];
    if (action.contains("sidecar")) sidecars.push_back(action["sidecar"].at("path").get<std::string>());
    if (action.contains("remove")) files.erase(key_of(action["remove"]));
    if (action.contains("add")) {
      const nlohmann::json& add = action["add"];
      files[key_of(add)] = {add.at("path").get<std::string>(), add.value("partitionValues", nlohmann::json()),
                            add.value("deletionVector", nlohmann::json())};
    }
  }

  /// Checks that the table can be read, and takes its schema. Throws errc::argument for features of Delta
  /// that are not known.
  void finish(const std::string& folder) {
    in_json_file(folder, not_as_written, [&] {
      if (!protocol.is_object() || !metadata.is_object())
        throw error(errc::format, "the log does not say what its protocol and its schema are");
      const int reader = number_at<int>(protocol, "minReaderVersion");
      if (reader > 3)
        throw error(errc::argument,
                    {"the table asks for readers of version ", reader, "; version 3 is known"});
      schema_ = delta_json(metadata.at("schemaString").get<std::string>());
      if (!schema_.is_object())
        throw error(errc::format, "the schema in the log is no object of JSON that can be read");
      bool mapping = reader == 2;
      for (const nlohmann::json& one : protocol.value("readerFeatures", nlohmann::json::array())) {
        constexpr std::array known{"columnMapping",       "deletionVectors",     "timestampNtz",
                                   "v2Checkpoint",        "vacuumProtocolCheck", "typeWidening",
                                   "typeWidening-preview"};
        const auto name = one.get<std::string>();
        mapping = mapping || name == "columnMapping";
        // Writers name the feature before any column needs it.
        if (name.starts_with("variant") && !delta_has_type(schema_, "variant")) continue;
        if (std::ranges::find(known, std::string_view(name),
                              [](const char* k) { return std::string_view(k); }) == known.end())
          throw error(errc::argument,
                      {"the table has the feature '", name, "' of Delta, which is not known here"});
      }
      const nlohmann::json settings = metadata.value("configuration", nlohmann::json::object());
      const std::string mode =
          settings.is_object() ? settings.value("delta.columnMapping.mode", "none") : "none";
      mapped_ = mode != "none" && mapping;
      by_id_ = mode == "id" && mapping;
      parts_.clear();
      for (const nlohmann::json& one : metadata.value("partitionColumns", nlohmann::json::array()))
        parts_.push_back(one.get<std::string>());
    });
  }

  /// The files in the order of their paths.
  [[nodiscard]] std::vector<std::string> paths(const std::string& folder) const {
    std::vector<std::string> made;
    for (const auto& [key, one] : files) made.push_back(delta_path(folder, one.path));
    return made;
  }

  /// Reads deletion vectors.
  [[nodiscard]] table_facts facts(const std::string& folder, const table_objects& objects) const {
    return in_json_file(folder, not_as_written, [&] {
      table_facts made = facts_of(folder);
      made.deleted = deleted(folder, objects);
      return made;
    });
  }

 private:
  static constexpr std::string_view not_as_written = "the log is not as Delta writes it: ";

  [[nodiscard]] static std::string key_of(const nlohmann::json& action) {
    auto key = action.at("path").get<std::string>();
    if (action.contains("deletionVector") && action["deletionVector"].is_object()) {
      const nlohmann::json& deleted = action["deletionVector"];
      append(key, {std::string_view("\0", 1), deleted.at("storageType").get<std::string>(),
                   deleted.at("pathOrInlineDv").get<std::string>()});
      if (deleted.contains("offset") && deleted["offset"].is_number_integer())
        append(key, {"@", number_at<std::int64_t>(deleted, "offset")});
    }
    return key;
  }

  [[nodiscard]] table_facts facts_of(const std::string& folder) const {
    table_facts made;
    made.schema = arrow_type::of_format("+s");
    std::vector<std::string> keys(parts_.size());  // what partition columns are called in actions
    made.part_types.resize(parts_.size());
    for (const nlohmann::json& field : schema_.at("fields")) {
      const auto name = field.at("name").get<std::string>();
      std::string stored;
      if (mapped_ && field.contains("metadata"))
        stored = field["metadata"].value("delta.columnMapping.physicalName", std::string());
      arrow_type type = delta_type(field.at("type"), name, false);
      const auto part = static_cast<std::size_t>(std::ranges::find(parts_, name) - parts_.begin());
      if (part == parts_.size()) {
        made.schema.children.push_back(std::move(type));
        made.stored_as.emplace_back();
        if (!stored.empty()) made.stored_as.back().push_back(std::move(stored));
        if (mapped_) made.stored_types.push_back(delta_type(field.at("type"), name, true));
        if (by_id_) made.field_ids.push_back(number_at<int>(field.at("metadata"), "delta.columnMapping.id"));
        continue;
      }
      keys[part] = stored.empty() ? name : stored;
      made.part_types[part] = std::move(type);
    }
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (made.part_types[i].name.empty())
        throw error(errc::format,
                    {"the table has partitions by the column '", parts_[i], "', which is not in its schema"});
    std::uint64_t mark = hash_bytes(version, bytes_of(metadata.value("id", std::string())));
    for (const auto& [key, one] : files) {
      mark = hash_bytes(mark, bytes_of(key));
      made.part_values.emplace_back();
      for (std::size_t i = 0; i < keys.size(); ++i) {
        std::optional<std::string> value;
        if (one.values.is_object() && one.values.contains(keys[i]) && one.values[keys[i]].is_string())
          value = one.values[keys[i]].get<std::string>();
        if (value && value->empty()) value.reset();  // as Delta has it
        if (value && made.part_types[i].format.starts_with('t')) {
          auto number = made.part_types[i].format == "tdD" ? days_of_date(*value) : delta_time(*value);
          if (const auto day = days_of_date(*value); !number && day)  // of a column that was a date before
            number = *day * std::int64_t{86'400'000'000};
          if (number) value = std::to_string(*number);
        }
        if (value && made.part_types[i].format == "z") value = delta_bytes(*value);
        made.part_values.back().push_back(std::move(value));
      }
    }
    made.says = text({"delta('", folder, "', version ", version, ")"});
    made.mark = mix64(mark);
    return made;
  }

  // Where the deletion vector of a file is.
  struct vector_place {
    std::string path;             // empty: there is none, or it is here
    std::vector<std::byte> here;  // one that the log has
    std::uint64_t offset = 0, size = 0, count = 0;
    object_id object = 0;
  };

  [[nodiscard]] static vector_place place_of(const std::string& folder, const nlohmann::json& said) {
    const auto kind = said.at("storageType").get<std::string>(),
               where = said.at("pathOrInlineDv").get<std::string>();
    vector_place made;
    made.size = number_at<std::uint64_t>(said, "sizeInBytes");
    made.count = number_at<std::uint64_t>(said, "cardinality");
    if (kind == "i") {
      made.here = from_z85(where);
      if (made.here.size() < made.size)
        throw error(errc::format, "an inline deletion vector is shorter than it says");
      made.here.resize(to_size(made.size));
    } else if (kind == "u" || kind == "p") {
      made.path =
          kind == "u" ? name_in_folder(folder, deletion_vector_name(where)) : delta_path(folder, where);
      if (said.contains("offset") && said["offset"].is_number_integer())
        made.offset = number_at<std::uint64_t>(said, "offset");
    } else {
      throw error(errc::format, {"a deletion vector is kept in the way '", kind, "', which is not known"});
    }
    return made;
  }
  [[nodiscard]] static std::vector<std::uint64_t> rows_of(const vector_place& one, bytes_view bytes) {
    constexpr std::uint64_t maximum = std::uint64_t{1} << 27;  // which are a gigabyte here
    std::vector<std::uint64_t> rows = read_deletion_vector(bytes, std::min(maximum, one.count));
    if (rows.size() != one.count)
      throw error(errc::format,
                  {"a deletion vector has ", rows.size(), " rows, and the log says ", one.count});
    return rows;
  }
  // By file: the rows that are deleted.
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> deleted(const std::string& folder,
                                                                const table_objects& objects) const {
    std::vector<std::vector<std::uint64_t>> made(files.size());
    std::vector<std::pair<std::size_t, vector_place>> in_files;
    std::vector<std::string> names;
    std::map<std::string, object_id> known;
    std::size_t next = 0;
    for (const auto& [key, one] : files) {
      const std::size_t number = next++;
      if (!one.deleted.is_object()) continue;
      vector_place found = place_of(folder, one.deleted);
      if (found.path.empty()) {
        made[number] = rows_of(found, found.here);
        continue;
      }
      const auto [place, is_new] = known.try_emplace(found.path, static_cast<object_id>(names.size()));
      if (is_new) names.push_back(found.path);
      found.object = place->second;
      in_files.emplace_back(number, std::move(found));
    }
    if (in_files.empty()) return made;
    objects.open(names, [&](session_view session) {
      const std::size_t threads = std::min(in_files.size(), table_objects::max_in_flight);
      for_each_in_parallel(in_files.size(), threads, [&](std::size_t i) {
        const auto& [number, one] = in_files[i];
        in_file(one.path, [&] {
          made[number] =
              rows_of(one, deletion_vector_in_file(session, one.object, "\1", one.offset, one.size));
        });
      });
    });
    return made;
  }

  nlohmann::json schema_;
  bool mapped_ = false, by_id_ = false;
  std::vector<std::string> parts_;
};

}  // namespace penstock::inline v0_1::detail
