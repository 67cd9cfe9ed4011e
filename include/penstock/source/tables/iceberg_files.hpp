// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/avro_file.hpp>
#include <penstock/source/tables/deletion_vector.hpp>
#include <penstock/source/tables/iceberg_metadata.hpp>
#include <penstock/source/tables/parquet_load.hpp>

#include <nlohmann/json.hpp>

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
    in_file(path, [&] {
      avro_file file(bytes, iceberg_unpack);
      while (const auto record = file.next()) take(file, *record);
    });
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

/// Calls `take(path, position)` for each row of a file of position deletes.
///
/// Source: Apache Iceberg, "Spec", "Position Delete Files".
template <class Take>
void read_iceberg_deletes(session_view session, object_id object, Take&& take) {
  constexpr int path_number = 2147483546, position_number = 2147483545;
  bool in_order = true;
  const auto choose = [&](const parquet::SchemaDescriptor& schema, parquet::ArrowReaderProperties& how) {
    std::vector<int> columns{-1, -1};
    for (int i = 0; i < schema.num_columns(); ++i) {
      const int id = schema.Column(i)->schema_node()->field_id();
      const std::string name = schema.Column(i)->path()->ToDotString();
      if (id == path_number || (id < 0 && name == "file_path")) columns[0] = i;
      if (id == position_number || (id < 0 && name == "pos")) columns[1] = i;
    }
    if (columns[0] < 0 || columns[1] < 0)
      throw error(errc::format, "the file of position deletes does not have the columns file_path and pos");
    // A path in each row may be more than an array of texts can hold.
    how.set_read_dictionary(columns[0], true);
    in_order = columns[0] < columns[1];
    return columns;
  };
  read_parquet_batches(session, object, choose, [&](const shared<const imported_batch>& batch) {
    const arrow_column& paths = batch->root.children[in_order ? 0 : 1];
    const arrow_column& positions = batch->root.children[in_order ? 1 : 0];
    for (std::uint64_t row = 0; row < batch->root.length; ++row) {
      const arrow_cell path(paths, row), position(positions, row);
      if (position.type().format != "l" || position.is_null())
        throw error(errc::format, "the file of position deletes has positions that are no numbers");
      if (path.is_null()) throw error(errc::format, "the file has a null as a path: it is damaged");
      if (!path.type().is_bytes())
        throw error(errc::format, {"the file has paths of type ", path.type().text()});
      take(text_of(path.bytes()), position.number<std::int64_t>());
    }
  });
}

/// Gathers which rows of a snapshot's files are deleted.
class iceberg_deleted {
 public:
  /// Reads the deletion vectors, and the files of position deletes, 16 at once.
  iceberg_deleted(const iceberg_metadata& table, const iceberg_files& files)
      : made(files.data.size()), files_(files), has_vector_(files.data.size()) {
    std::vector<std::string> names;
    std::vector<const iceberg_file*> vectors, positions;
    for (const iceberg_file& one : files.deletions) {
      if (one.vector && !take(one)) continue;
      (one.vector ? vectors : positions).push_back(&one);
    }
    for (const auto* some : {&vectors, &positions})
      for (const iceberg_file* one : *some) names.push_back(table.find(one->written));
    if (names.empty()) return;
    table.objects().open(names, [&](session_view session) {
      const auto object = [](std::size_t i) { return static_cast<object_id>(i); };
      for_each(names, 0, vectors.size(), [&](std::size_t i) { add_vector(*vectors[i], session, object(i)); });
      for_each(names, vectors.size(), names.size(),
               [&](std::size_t i) { add_positions(*positions[i - vectors.size()], session, object(i)); });
    });
    for (std::vector<std::uint64_t>& rows : made) {
      std::ranges::sort(rows);
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    }
  }

  std::vector<std::vector<std::uint64_t>> made;  // by file of rows, ascending

 private:
  static constexpr std::uint64_t max_rows = std::uint64_t{1} << 27;  // which are a gigabyte here

  // Errors name the file.
  template <class Work>
  static void for_each(const std::vector<std::string>& names, std::size_t first, std::size_t end,
                       Work&& work) {
    const std::size_t count = end - first;
    for_each_in_parallel(count, std::min(count, table_objects::max_in_flight),
                         [&](std::size_t i) { in_file(names[first + i], [&] { work(first + i); }); });
  }
  // The number of a file; that of all files for one that is not there any more.
  [[nodiscard]] std::size_t find(std::string_view path) const {
    const auto found = std::ranges::lower_bound(
        files_.data, path, {}, [](const iceberg_file& file) { return std::string_view(file.written); });
    if (found == files_.data.end() || found->written != path) return files_.data.size();
    return static_cast<std::size_t>(found - files_.data.begin());
  }
  [[nodiscard]] static bool is_of(const iceberg_file& deletes, const iceberg_file& file) {
    return file.sequence <= deletes.sequence && file.spec == deletes.spec && file.values == deletes.values &&
           (!deletes.only || *deletes.only == file.written);
  }
  static void check(const iceberg_file& file, std::int64_t row) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= file.rows)
      throw error(errc::format, {"the position deletes have row ", row, " of '", file.written,
                                 "', which has ", file.rows, " rows"});
  }

  // Whether a deletion vector is of a file. That has no other deletes: whoever writes a vector takes over
  // what was deleted before.
  [[nodiscard]] bool take(const iceberg_file& one) {
    const std::size_t its = find(*one.only);
    if (its == files_.data.size() || !is_of(one, files_.data[its])) return false;
    if (has_vector_[its])
      throw error(errc::format, {"the snapshot has two deletion vectors of '", *one.only, "'"})
          .in_file(one.written);
    has_vector_[its] = true;
    return true;
  }
  void add_vector(const iceberg_file& one, session_view session, object_id object) {
    constexpr std::uint64_t around = 8;
    const std::size_t its = find(*one.only);
    made[its] = read_deletion_vector(
        deletion_vector_in_file(session, object, "PFA1", one.vector->offset, one.vector->size - around),
        std::min(max_rows, one.rows));
    if (made[its].size() != one.rows)
      throw error(errc::format, {"the deletion vector of '", *one.only, "' has ", made[its].size(),
                                 " rows, and its manifest says ", one.rows});
    if (!made[its].empty()) check(files_.data[its], static_cast<std::int64_t>(made[its].back()));
  }
  void add_positions(const iceberg_file& one, session_view session, object_id object) {
    // Rows come in the order of their paths.
    std::optional<std::string> last;
    std::size_t its = 0;
    std::vector<std::uint64_t> rows;
    const auto keep = [&] {
      if (rows.empty()) return;
      const std::scoped_lock lock(mutex_);
      if (made[its].size() + rows.size() > max_rows)
        throw error(errc::limit, {"the position deletes have more than ", max_rows, " rows of '",
                                  files_.data[its].written, "'; compact the table"});
      made[its].insert(made[its].end(), rows.begin(), rows.end());
      rows.clear();
    };
    read_iceberg_deletes(session, object, [&](std::string_view path, std::int64_t position) {
      constexpr std::size_t some = 1 << 16;
      if (!last || path != *last || rows.size() == some) {
        keep();
        last = path;
        its = find(path);
      }
      if (its == files_.data.size() || has_vector_[its] || !is_of(one, files_.data[its])) return;
      check(files_.data[its], position);
      rows.push_back(static_cast<std::uint64_t>(position));
    });
    keep();
  }

  const iceberg_files& files_;
  std::vector<bool> has_vector_;
  std::mutex mutex_;
};

/// Makes the facts of a snapshot's files.
class iceberg_facts {
 public:
  iceberg_facts(const iceberg_metadata& table, iceberg_files& files, const iceberg_type& columns)
      : files_(files) {
    made.names = table.names_in_files();
    made.schema = arrow_type::of_format("+s");
    made.part_values.resize(files_.data.size());
    made.must_have.resize(files_.data.size());
    std::size_t at = 0;
    for (const arrow_type& column : columns.type.children) {
      const std::size_t count = numbers_of(column);
      add(column, std::span(columns.numbers).subspan(at, count));
      at += count;
    }
    made.deleted = std::move(iceberg_deleted(table, files_).made);
  }

  table_facts made;

 private:
  // Which value of a file's partition a column is; none if the partition does not have it as it is.
  [[nodiscard]] std::optional<std::size_t> place_in(const iceberg_file& file, int column) const {
    const std::vector<iceberg_part>& parts = files_.parts(file.spec);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].source == column && parts[i].transform == "identity") return i;
    return std::nullopt;
  }
  void add(const arrow_type& column, std::span<const int> numbers) {
    // Files may leave out what is the same in all of their rows; where all have a value for it, it is not
    // read from them.
    constexpr std::array<std::string_view, 7> kept{"b", "i", "l", "u", "tdD", "tsu:", "tsu:UTC"};
    const auto has = [&](const iceberg_file& file) { return place_in(file, numbers.front()).has_value(); };
    if (!files_.data.empty() && std::ranges::find(kept, column.format) != kept.end() &&
        std::ranges::all_of(files_.data, has)) {
      made.part_types.push_back(column);
      for (std::size_t i = 0; i < files_.data.size(); ++i)
        made.part_values[i].push_back(files_.data[i].values[*place_in(files_.data[i], numbers.front())]);
      return;
    }
    for (std::size_t i = 0; i < files_.data.size(); ++i) {
      const auto place = place_in(files_.data[i], numbers.front());
      if (place && files_.data[i].values[*place]) made.must_have[i].push_back(column.name);
    }
    made.schema.children.push_back(column);
    made.field_ids.insert(made.field_ids.end(), numbers.begin(), numbers.end());
  }

  iceberg_files& files_;
};

/// `called`: the table, in messages.
[[nodiscard]] inline table_snapshot read_iceberg(std::string_view called, iceberg_place where,
                                                 const table_objects& objects,
                                                 const iceberg_metadata::wish& asked) {
  const iceberg_metadata table(std::move(where), objects);
  const nlohmann::json snapshot = table.snapshot(asked);
  const iceberg_type columns = table.schema(snapshot, asked);
  iceberg_files files(table, snapshot);
  table_snapshot found;
  for (const iceberg_file& one : files.data) found.paths.push_back(table.find(one.written));
  found.table = std::move(iceberg_facts(table, files, columns).made);
  const std::int64_t number = snapshot.is_null() ? -1 : number_at<std::int64_t>(snapshot, "snapshot-id");
  found.table.says = snapshot.is_null() ? text({"iceberg('", called, "', no snapshot)"})
                                        : text({"iceberg('", called, "', snapshot ", number, ")"});
  const std::string uuid = table.guarded([&] { return table.uuid(); });
  found.table.mark = mix64(hash_bytes(static_cast<std::uint64_t>(number), bytes_of(uuid)));
  return found;
}

}  // namespace penstock::inline v0_1::detail
