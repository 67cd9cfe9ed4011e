// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/tables/avro_file.hpp>
#include <penstock/source/tables/iceberg_bytes.hpp>
#include <penstock/source/tables/iceberg_metadata.hpp>
#include <penstock/source/tables/table_objects.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// Where a file has a deletion vector, with its size and its checksum.
struct iceberg_vector {
  std::uint64_t offset, size;
};

/// A file of a snapshot, of rows or of rows' places that are deleted; or one deletion vector in a file.
struct iceberg_file {
  std::string written;  // its path, as the manifest has it
  std::int64_t spec = 0;
  std::vector<std::optional<std::string>> values;  // of the partition, by field of the spec
  std::uint64_t rows = 0;
  std::int64_t sequence = 0;
  std::optional<std::string> only;  // of deletions: the one file that they are of
  std::optional<iceberg_vector> vector = {};
};

/// The files of a snapshot.
class iceberg_files {
 public:
  /// Reads the snapshot's manifests.
  iceberg_files(const iceberg_metadata& table, const nlohmann::json& snapshot) : table_(table) {
    if (snapshot.is_null()) return;
    const std::vector<manifest> all = manifests(snapshot);
    std::vector<std::string> paths;
    for (const manifest& one : all) paths.push_back(table_.find(one.path));
    table_.objects().read_in_order(paths, max_iceberg_bytes, [&](std::size_t i, bytes_view bytes) {
      read(all[i], paths[i], bytes);
      return true;
    });
    std::ranges::sort(data, {}, &iceberg_file::written);
    std::ranges::sort(deletions, {}, &iceberg_file::written);
    const auto twice = std::ranges::adjacent_find(data, {}, &iceberg_file::written);
    if (twice != data.end())
      throw error(errc::format, {"the snapshot has the file '", twice->written, "' twice"})
          .in_file(table_.path());
  }

  [[nodiscard]] const std::vector<iceberg_part>& parts(std::int64_t spec) {
    const auto found = parts_.find(spec);
    if (found != parts_.end()) return found->second;
    return parts_[spec] = table_.parts(spec);
  }

  std::vector<iceberg_file> data, deletions;  // in the order of their paths

 private:
  struct manifest {
    std::string path;
    std::int64_t spec = 0, sequence = 0;
    bool deletes = false, says_spec = true;
  };

  [[noreturn, gnu::cold]] static void no_field(std::string_view name) {
    throw error(errc::format, {"the file has an entry without '", name, "': it is damaged"});
  }
  [[nodiscard]] static std::string text_in(const avro_record& entry, avro_name field) {
    const auto found = entry.text(field);
    if (!found) no_field(field.name);
    return std::string(*found);
  }
  [[nodiscard]] static std::int64_t number_in(const avro_record& entry, avro_name field) {
    const auto found = entry.number(field);
    if (!found) no_field(field.name);
    return *found;
  }
  // Calls `take(file, record)` for all records of a file of Avro.
  template <class Take>
  static void for_each(const std::string& path, bytes_view bytes, Take&& take) {
    try {
      avro_file file(bytes, iceberg_unpack);
      while (const auto record = file.next()) take(file, *record);
    } catch (error& e) {
      e.in_file(path);
      throw;
    }
  }

  [[nodiscard]] std::vector<manifest> manifests(const nlohmann::json& snapshot) const {
    return table_.guarded([&] {
      std::vector<manifest> found;
      if (snapshot.value("manifest-list", nlohmann::json())
              .is_null()) {  // as tables of version 1 may have it
        for (const nlohmann::json& path : snapshot.at("manifests"))
          found.push_back({path.get<std::string>(), 0, 0, false, false});
        return found;
      }
      const std::string path = table_.find(snapshot["manifest-list"].get<std::string>());
      const auto bytes = table_.objects().read(path, max_iceberg_bytes);
      for_each(path, bytes, [&](const avro_file&, const avro_record& one) {
        const std::int64_t content = one.number({517, "content"}).value_or(0);
        if (content != 0 && content != 1)
          throw error(errc::format, {"a manifest has content of kind ", content, ", which is not known"});
        found.push_back({text_in(one, {500, "manifest_path"}), number_in(one, {502, "partition_spec_id"}),
                         one.number({515, "sequence_number"}).value_or(0), content == 1, true});
      });
      return found;
    });
  }

  void read(const manifest& from, const std::string& path, bytes_view bytes) {
    for_each(path, bytes, [&](const avro_file& file, const avro_record& entry) {
      constexpr std::int64_t existing = 0, added = 1, deleted = 2;
      const std::int64_t status = number_in(entry, {0, "status"});
      if (status == deleted) return;
      if (status != existing && status != added)
        throw error(errc::format, {"an entry of the manifest has status ", status, ", which is not known"});
      const auto said = entry.record({2, "data_file"});
      if (!said) no_field("data_file");
      iceberg_file made;
      made.written = text_in(*said, {100, "file_path"});
      check(*said, from, made.written);
      made.spec = from.says_spec ? from.spec : spec_in(file);
      // Those of entries that are added are not known before the commit, and stand in the manifest list.
      const auto sequence = entry.number({3, "sequence_number"});
      if (!sequence && status == existing && from.sequence != 0)
        throw error(errc::format, {"the entry of '", made.written, "' has no sequence number"});
      made.sequence = sequence.value_or(from.sequence);
      const std::int64_t rows = number_in(*said, {103, "record_count"});
      if (rows < 0)
        throw error(errc::format, {"the entry of '", made.written, "' has ", rows, " rows: it is damaged"});
      made.rows = static_cast<std::uint64_t>(rows);
      if (const auto only = said->text({143, "referenced_data_file"})) made.only = *only;
      if (from.deletes && is_format(*said, "PUFFIN")) made.vector = vector_in(*said, made);
      const auto values = said->record({102, "partition"});
      for (const iceberg_part& part : parts(made.spec)) {
        const avro_name named{part.number, part.name};
        // No value there would look like a null.
        if (part.transform == "identity" && (!values || !values->declares(named))) no_field(part.name);
        made.values.push_back(values ? values->spelled(named) : std::nullopt);
      }
      (from.deletes ? deletions : data).push_back(std::move(made));
    });
  }
  [[nodiscard]] static std::int64_t spec_in(const avro_file& file) {
    const std::string_view said = file.metadata("partition-spec-id");
    std::int64_t spec = 0;
    std::from_chars(said.data(), said.data() + said.size(), spec);
    return spec;
  }

  [[nodiscard]] static bool is_format(const avro_record& said, std::string_view format) {
    return std::ranges::equal(text_in(said, {101, "file_format"}), format, {},
                              [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  }
  [[nodiscard]] static iceberg_vector vector_in(const avro_record& said, const iceberg_file& file) {
    const auto offset = said.number({144, "content_offset"}),
               size = said.number({145, "content_size_in_bytes"});
    constexpr std::int64_t least = 12;
    if (!file.only || !offset || !size || *offset < 0 || *size < least)
      throw error(errc::format, {"the entry of the deletion vector in '", file.written,
                                 "' does not say where it is, or of which file: it is damaged"});
    return {static_cast<std::uint64_t>(*offset), static_cast<std::uint64_t>(*size)};
  }

  // Throws errc::argument for a file that is of no kind that is read.
  static void check(const avro_record& said, const manifest& from, const std::string& path) {
    constexpr std::int64_t rows = 0, positions = 1, equality = 2;
    const std::int64_t content = said.number({134, "content"}).value_or(rows);
    if (content == equality)
      throw error(errc::argument, {"the table has equality deletes, '", path,
                                   "', which are not applied here; compact the table (Spark: "
                                   "rewrite_data_files), and read the new snapshot"});
    if (content != (from.deletes ? positions : rows))
      throw error(errc::format, {"a manifest of ", from.deletes ? "deletes" : "rows", " has '", path,
                                 "' with content of kind ", content, ": it is damaged"});
    if (!is_format(said, "PARQUET") && !(from.deletes && is_format(said, "PUFFIN")))
      throw error(errc::argument, {"the table has the file '", path, "' of format ",
                                   text_in(said, {101, "file_format"}), "; only Parquet is read"});
    if (said.has({131, "key_metadata"}))
      throw error(errc::argument, {"the table has the encrypted file '", path, "', which is not read here"});
  }

  const iceberg_metadata& table_;
  std::map<std::int64_t, std::vector<iceberg_part>> parts_;
};

}  // namespace penstock::inline v0_1::detail
