// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/json_description.hpp>
#include <penstock/source/tables/arrow_cpp.hpp>
#include <penstock/source/tables/table_facts.hpp>
#include <penstock/source/tables/table_objects.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The most bytes that a file of a table's metadata may have.
inline constexpr std::uint64_t max_iceberg_bytes = 512_MiB;

/// Unpacks "deflate" and "zstandard", as Avro has them, and "gzip"; an `avro_unpacker`.
inline void iceberg_unpack(std::string_view codec, bytes_view packed, std::uint64_t limit,
                           std::vector<std::byte>& into) {
  arrow::util::GZipCodecOptions zlib;
  zlib.gzip_format = codec == "gzip" ? arrow::util::GZipFormat::GZIP : arrow::util::GZipFormat::DEFLATE;
  if (codec != "deflate" && codec != "zstandard" && codec != "gzip")
    throw error(errc::argument,
                {"the metadata are packed with '", codec, "'; null, deflate and zstandard are read"});
  const auto work = [&]() -> arrow::Status {
    std::unique_ptr<arrow::util::Codec> made;
    if (codec == "zstandard") {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::ZSTD));
    } else {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::GZIP, zlib));
    }
    ARROW_ASSIGN_OR_RAISE(const auto unpacker, made->MakeDecompressor());
    constexpr std::uint64_t least = 4096, likely = 4;
    into.resize(to_size(std::min(limit, std::max(least, likely * packed.size()))));
    std::size_t in = 0, out = 0;
    while (!unpacker->IsFinished()) {
      ARROW_ASSIGN_OR_RAISE(const auto done,
                            unpacker->Decompress(static_cast<std::int64_t>(packed.size() - in),
                                                 reinterpret_cast<const std::uint8_t*>(packed.data()) + in,
                                                 static_cast<std::int64_t>(into.size() - out),
                                                 reinterpret_cast<std::uint8_t*>(into.data()) + out));
      in += static_cast<std::size_t>(done.bytes_read);
      out += static_cast<std::size_t>(done.bytes_written);
      if (unpacker->IsFinished()) break;
      if (out == into.size() || done.need_more_output) {
        if (into.size() == limit)
          throw error(errc::limit, {"the metadata unpack to more than ", limit, " bytes"});
        into.resize(to_size(std::min<std::uint64_t>(limit, 2 * into.size())));
      } else if (done.bytes_read == 0 && done.bytes_written == 0) {
        return arrow::Status::IOError("they are cut off");
      }
    }
    into.resize(out);
    return arrow::Status::OK();
  };
  const arrow::Status done = work();
  if (!done.ok())
    throw error(errc::format, {"the metadata cannot be unpacked: ", arrow_message(done.message())});
}

/// A type, and the numbers of what it consists of, depth first, of which parquet_files has need; -1 for none.
struct iceberg_type {
  arrow_type type;
  std::vector<int> numbers;
};

/// The type that a schema calls so: "decimal(9, 2)", "fixed[16]", "timestamptz". Throws errc::argument for
/// one that is not known.
[[nodiscard]] inline arrow_type iceberg_plain_type(const std::string& called) {
  constexpr std::pair<std::string_view, std::string_view> known[] = {{"boolean", "b"},
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
                                                                     {"unknown", "n"}};
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

/// The number of a metadata file, "v3.metadata.json" or "00003-<uuid>.gz.metadata.json"; none for other
/// names.
[[nodiscard]] inline std::optional<std::uint64_t> iceberg_number(std::string_view name) {
  if (!name.ends_with(".metadata.json") && !name.ends_with(".metadata.json.gz")) return std::nullopt;
  if (name.starts_with('v')) name.remove_prefix(1);
  std::uint64_t number = 0;
  const auto [behind, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failed != std::errc{} || (*behind != '-' && *behind != '.')) return std::nullopt;
  return number;
}

/// A metadata file of a table, and the table's folder.
struct iceberg_place {
  std::string folder, file;
};

/// The newest of the metadata files among `names`, which lie in `folder`, that of the table `table`.
[[nodiscard]] inline std::string iceberg_newest(const std::string& table, const std::string& folder,
                                                std::span<const std::string> names,
                                                const table_objects& objects) {
  const auto is_there = [&](const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::map<std::uint64_t, std::vector<std::string>> found;
  for (const std::string& name : names)
    if (const auto number = iceberg_number(std::string_view(name).substr(name.rfind('/') + 1)))
      found[*number].push_back(name);
  if (found.empty())
    throw error(errc::missing,
                "this is no table of Iceberg: there is no file *.metadata.json in its folder metadata")
        .in_file(table);
  std::uint64_t newest = found.rbegin()->first;
  const std::string hint = name_in_folder(folder, "version-hint.text");
  if (is_there(hint)) {
    const std::vector<std::byte> bytes = objects.read(hint, max_iceberg_bytes);
    std::string said(text_of({bytes.data(), bytes.size()}));
    std::erase_if(said, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
    std::uint64_t number = 0;
    const char* const end = said.data() + said.size();
    if (const auto done = std::from_chars(said.data(), end, number);
        done.ptr != end || done.ec != std::errc{}) {
      if (!said.ends_with(".metadata.json")) said += ".metadata.json";
      std::string made = name_in_folder(folder, said);
      if (!is_there(made))
        throw error(errc::missing, {"the file says that the newest metadata are in '", said,
                                    "', which is not there; name a metadata file"})
            .in_file(hint);
      return made;
    }
    if (!found.contains(number))
      throw error(errc::missing, {"the file says that the newest metadata have the number ", number,
                                  ", and there are none; name a metadata file"})
          .in_file(hint);
    // The hint is written after the metadata, and may be late.
    while (found.contains(number + 1)) ++number;
    newest = number;
  }
  const std::vector<std::string>& all = found.at(newest);
  if (all.size() > 1)
    throw error(errc::argument,
                {"the table has ", all.size(), " metadata files of number ", newest,
                 ", and only its catalogue knows which one is true; name one of them, such as '",
                 *std::ranges::min_element(all), "'"})
        .in_file(table);
  return all.front();
}

/// What a path in the local file system names: a table's folder, or a metadata file; file:///... is one, too.
[[nodiscard]] inline iceberg_place iceberg_place_of(const std::string& given, const table_objects& objects) {
  namespace fs = std::filesystem;
  const std::string path = name_of_uri(given);
  std::error_code failed;
  const bool named = iceberg_number(fs::path(path).filename().string()).has_value() ||
                     path.ends_with(".json") || path.ends_with(".json.gz");
  iceberg_place made;
  if (named && !fs::is_directory(path, failed)) {
    made.file = path;
  } else {
    const std::string folder = path + "/metadata";
    std::vector<std::string> names;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
      names.push_back(at->path().string());
    made.file = iceberg_newest(path, folder, names, objects);
  }
  fs::path folder = fs::path(made.file).parent_path();
  if (folder.filename() == "metadata") folder = folder.parent_path();
  made.folder = folder.empty() ? "." : folder.string();
  return made;
}

/// What the objects of a storage name: the metadata folder of one table, among other objects or alone, or one
/// metadata file. Throws errc::argument for those of two tables.
[[nodiscard]] inline iceberg_place iceberg_place_of(std::span<const std::string> names,
                                                    const table_objects& objects) {
  std::vector<std::string> metadata;
  std::optional<std::string> folder;
  for (const std::string& name : names) {
    const std::size_t slash = name.rfind('/');
    const std::string last = name.substr(slash == name.npos ? 0 : slash + 1);
    if (!iceberg_number(last) && last != "version-hint.text") continue;
    std::string its = name.substr(0, slash == name.npos ? 0 : slash);
    if (folder && *folder != its)
      throw error(errc::argument, {"the storage has the metadata of two tables, in '", *folder, "' and '",
                                   its, "': name one"});
    folder = std::move(its);
    metadata.push_back(name);
  }
  const std::string inside = folder.value_or("");
  iceberg_place made{
      inside, iceberg_newest(names.empty() ? "the storage" : names.front(), inside, metadata, objects)};
  if (inside == "metadata") made.folder.clear();
  if (inside.ends_with("/metadata")) made.folder.resize(inside.rfind('/'));
  return made;
}

/// A metadata file of a table.
class iceberg_metadata {
 public:
  using json = nlohmann::json;

  iceberg_metadata(iceberg_place where, table_objects objects)
      : objects_(std::move(objects)), path_(std::move(where.file)), folder_(std::move(where.folder)) {
    read();
  }

  /// `work()`, whose errors name the file, and for which values of another kind are errors of it.
  template <class Work>
  auto guarded(Work&& work) const {
    return in_json_file(path_, "the table's metadata are not as Iceberg writes them: ", work);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// How the table's files are read.
  [[nodiscard]] const table_objects& objects() const noexcept { return objects_; }
  [[nodiscard]] std::string uuid() const { return all_.value("table-uuid", std::string()); }

  /// Which snapshot is asked for, of at most one kind; none: the current one.
  struct wish {
    std::optional<std::int64_t> id = {}, timestamp = {};
    std::optional<std::string> reference = {};  // a branch or a tag
  };
  /// The snapshot that is asked for; null for a table that has none.
  [[nodiscard]] json snapshot(const wish& asked) const {
    if (int{asked.id.has_value()} + int{asked.timestamp.has_value()} + int{asked.reference.has_value()} > 1)
      throw error(errc::argument,
                  "iceberg_options has a snapshot, a timestamp or a ref, and only one of them")
          .in_file(path_);
    return guarded([&]() -> json {
      const json snapshots = all_.value("snapshots", json::array());
      std::optional<std::int64_t> id = asked.id;
      if (asked.timestamp) id = snapshot_at(*asked.timestamp, snapshots);
      if (asked.reference) id = number_at<std::int64_t>(reference(*asked.reference), "snapshot-id");
      if (!id) {
        const json current = all_.value("current-snapshot-id", json());
        // Tables of version 1 have -1 for none.
        if (current.is_null() || whole_number<std::int64_t>(current, "current-snapshot-id") == -1) return {};
        id = whole_number<std::int64_t>(current, "current-snapshot-id");
      }
      std::string there;
      std::size_t count = 0;
      for (const json& one : snapshots) {
        const auto its = number_at<std::int64_t>(one, "snapshot-id");
        if (its == *id) return one;
        constexpr std::size_t told = 20;
        if (count < told) append(there, {count == 0 ? "" : ", ", its});
        if (count++ == told) there += ", ...";
      }
      throw error(errc::missing, {"the table does not have the snapshot ", *id, ", or not any more; ",
                                  count == 0 ? "it has none" : "those that can be read are ", there});
    });
  }

  /// The columns: of a snapshot or a tag those of its time, of branches the table's as they are now.
  [[nodiscard]] iceberg_type schema(const json& snapshot, const wish& asked) const {
    return guarded([&] {
      const bool as_now = !asked.id && !asked.timestamp &&
                          (!asked.reference || reference(*asked.reference).value("type", "") == "branch");
      const json schemas = all_.value("schemas", json::array());
      json wanted = all_.value("current-schema-id", json());
      if (!as_now && snapshot.is_object() && snapshot.contains("schema-id")) wanted = snapshot["schema-id"];
      for (const json& one : schemas)
        if (one.value("schema-id", json()) == wanted) return iceberg_type_of(one);
      if (!all_.contains("schema"))
        throw error(errc::format, {"the table does not have the schema ", wanted.dump()});
      return iceberg_type_of(all_["schema"]);
    });
  }

  /// The fields of a partition spec.
  [[nodiscard]] std::vector<iceberg_part> parts(std::int64_t spec) const {
    return guarded([&] {
      constexpr int first_number = 1000;
      json fields;
      for (const json& one : all_.value("partition-specs", json::array()))
        if (number_at<std::int64_t>(one, "spec-id") == spec) fields = one.at("fields");
      if (fields.is_null() && all_.contains("partition-spec") && spec == 0) fields = all_["partition-spec"];
      if (!fields.is_array())
        throw error(errc::format, {"the table does not have the partition spec ", spec});
      std::vector<iceberg_part> made;
      for (const json& one : fields) {
        const int number = first_number + static_cast<int>(made.size());
        made.push_back({one.contains("source-id") ? number_at<int>(one, "source-id") : -1,
                        one.contains("field-id") ? number_at<int>(one, "field-id") : number,
                        one.at("name").get<std::string>(), one.at("transform").get<std::string>()});
      }
      return made;
    });
  }

  /// What files without numbers call columns and fields. None if the table does not say.
  [[nodiscard]] std::optional<std::vector<stored_name>> names_in_files() const {
    return guarded([&]() -> std::optional<std::vector<stored_name>> {
      const json settings = all_.value("properties", json::object());
      if (!settings.is_object() || !settings.contains("schema.name-mapping.default")) return std::nullopt;
      return stored_names(
          parse_description(settings["schema.name-mapping.default"].get<std::string>(), max_levels));
    });
  }

  /// Where a file is now: in the table's folder, also if the table was moved or copied, or as it is written.
  [[nodiscard]] std::string find(const std::string& written) const {
    const std::string path = name_of_uri(written);
    std::string_view location = location_;
    while (location.ends_with('/')) location.remove_suffix(1);
    std::error_code failed;
    if (!location.empty() && path.starts_with(location) &&
        std::string_view(path).substr(location.size()).starts_with('/')) {
      std::string here = name_in_folder(folder_, std::string_view(path).substr(location.size() + 1));
      if (!objects_.local() || std::filesystem::exists(here, failed)) return here;
    }
    const std::string_view scheme = scheme_of_uri(path);
    if (scheme != scheme_of_uri(folder_) && !scheme.empty())
      throw error(errc::argument, {"the table has the file '", written,
                                   "' of another file system, which is not in the table's folder here, "
                                   "either; copy the whole table, or read its files with parquet and a "
                                   "storage of that system"})
          .in_file(path_);
    if (!objects_.local() || std::filesystem::exists(path, failed)) return path;
    throw error(errc::missing,
                {"the table has the file '", written, "', which is not there, nor in the table's folder"})
        .in_file(path_);
  }

 private:
  static constexpr int max_levels = 200;  // of JSON

  [[nodiscard]] static std::vector<stored_name> stored_names(const json& said) {
    std::vector<stored_name> made;
    for (const json& one : said)
      made.push_back({one.at("names").get<std::vector<std::string>>(),
                      one.contains("field-id") ? number_at<int>(one, "field-id") : -1,
                      stored_names(one.value("fields", json::array()))});
    return made;
  }

  void read() {
    std::vector<std::byte> bytes = objects_.read(path_, max_iceberg_bytes);
    guarded([&] {
      if (text_of({bytes.data(), bytes.size()}).starts_with("\x1f\x8b")) {
        std::vector<std::byte> unpacked;
        iceberg_unpack("gzip", {bytes.data(), bytes.size()}, max_iceberg_bytes, unpacked);
        bytes = std::move(unpacked);
      }
      const std::string_view said = text_of({bytes.data(), bytes.size()});
      all_ = parse_description(said, max_levels);
      if (!all_.is_object()) throw error(errc::format, "the table's metadata are no object of JSON");
      const int version = number_at<int>(all_, "format-version");
      if (version < 1 || version > 3)
        throw error(errc::argument, {"the table has format version ", version, "; 1 to 3 are known"});
      location_ = name_of_uri(all_.value("location", std::string()));
      return 0;
    });
  }

  // A branch or a tag. Tables of version 1 have none, and the branch main.
  [[nodiscard]] json reference(const std::string& name) const {
    const json all = all_.value("refs", json::object());
    if (all.is_object() && all.contains(name)) return all[name];
    const json current = all_.value("current-snapshot-id", json());
    if (name == "main" && current.is_number_integer() &&
        whole_number<std::int64_t>(current, "current-snapshot-id") != -1)
      return {{"snapshot-id", current}, {"type", "branch"}};
    std::string there;
    for (const auto& one : all.items()) append(there, {there.empty() ? "" : ", ", one.key()});
    throw error(errc::missing, {"the table does not have the branch or tag '", name, "'; ",
                                there.empty() ? "it has none" : "it has ", there});
  }
  // The current snapshot and those that it was made of, which those of other branches are not; oldest first.
  [[nodiscard]] json history(const json& snapshots) const {
    std::map<std::int64_t, const json*> by_id;
    for (const json& one : snapshots) by_id[number_at<std::int64_t>(one, "snapshot-id")] = &one;
    std::vector<const json*> found;
    json next = all_.value("current-snapshot-id", json());
    while (next.is_number_integer() && found.size() < snapshots.size()) {
      const auto at = by_id.find(
          whole_number<std::int64_t>(next, found.empty() ? "current-snapshot-id" : "parent-snapshot-id"));
      if (at == by_id.end()) break;
      found.push_back(at->second);
      next = at->second->value("parent-snapshot-id", json());
    }
    json made = json::array();
    for (; !found.empty(); found.pop_back()) made.push_back(*found.back());
    return made;
  }
  [[nodiscard]] std::int64_t snapshot_at(std::int64_t timestamp, const json& snapshots) const {
    // The log says which one was current; a snapshot may be older than that.
    json log = all_.value("snapshot-log", json::array());
    if (!log.is_array() || log.empty()) log = history(snapshots);
    std::optional<std::int64_t> found;
    std::int64_t latest = 0, first = 0;
    bool any = false;
    for (const json& one : log) {
      const auto time = number_at<std::int64_t>(one, "timestamp-ms");
      first = any ? std::min(first, time) : time;
      any = true;
      if (time > timestamp || (found && time < latest)) continue;
      latest = time;
      found = number_at<std::int64_t>(one, "snapshot-id");
    }
    if (!found && !any) throw error(errc::missing, "the table has no snapshot");
    if (!found)
      throw error(errc::missing, {"the table had no snapshot ", timestamp,
                                  " ms after 1970; the first that can be read is of ", first});
    return *found;
  }

  table_objects objects_;
  std::string path_, folder_, location_;
  json all_;
};

}  // namespace penstock::inline v0_1::detail
