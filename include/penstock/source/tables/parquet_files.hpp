// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/tables/arrow_import.hpp>
#include <penstock/source/tables/arrow_union.hpp>
#include <penstock/source/tables/hive_path.hpp>
#include <penstock/source/tables/parquet_input.hpp>
#include <penstock/source/tables/table_facts.hpp>
#include <penstock/source/tables/table_source.hpp>

#include <array>

namespace penstock::inline v0_1::detail {

static_assert(static_cast<int>(timestamp_unit::second) == arrow::TimeUnit::SECOND &&
                  static_cast<int>(timestamp_unit::milli) == arrow::TimeUnit::MILLI &&
                  static_cast<int>(timestamp_unit::micro) == arrow::TimeUnit::MICRO &&
                  static_cast<int>(timestamp_unit::nano) == arrow::TimeUnit::NANO,
              "penstock: the units of timestamps must have Arrow's numbers");

/// A version of a table: its files, and what the table says of them.
struct table_snapshot {
  std::vector<std::string> paths;
  table_facts table;
};

/// A file of a dataset.
struct parquet_file {
  std::shared_ptr<parquet::FileMetaData> metadata;
  shared<const std::vector<std::vector<int>>> columns;  // by leaf of the dataset: the file's columns
  bool converts = false;  // some of which have other types in the table; see as_in_table
  bool widens = false;    // some of which may have other types in the dataset; see widen_leaf
};

[[nodiscard]] inline arrow_type parquet_schema(const arrow::Schema& given) {
  arrow_abi::held<arrow_abi::schema> exported;
  const arrow::Status done = arrow::ExportSchema(given, reinterpret_cast<ArrowSchema*>(exported.get()));
  if (!done.ok())
    throw error(errc::format, {"Arrow cannot show the columns: ", arrow_message(done.message())});
  return import_arrow_schema(*exported);
}

/// A batch of Arrow C++, whose memory is its own.
[[nodiscard]] inline shared<const imported_batch> imported_rows(const arrow::RecordBatch& rows) {
  shared<const imported_schema> schema(new const imported_schema(parquet_schema(*rows.schema())));
  arrow_abi::held<arrow_abi::array> exported;
  check_arrow(arrow::ExportRecordBatch(rows, reinterpret_cast<ArrowArray*>(exported.get())), errc::format);
  return import_arrow_batch(std::move(exported), std::move(schema));
}

/// The files of a dataset of Parquet, as part of a plan. A shard is a row group, or what is left of it.
struct parquet_files : table_files {
  shared<const std::vector<parquet_file>> files;  // by object
  shared<const arrow_type> schema;                // of the files together, without what folders say, too
  shared<const std::vector<column_conflict>> conflicts;  // what cannot be read of it
  shared<const hive_columns> hive;
  shared<const std::vector<std::string>>
      all_leaves;                                // structs replaced by their fields; then those of folders
  std::vector<std::size_t> shown;                // the numbers of `leaves` among all
  std::vector<int> group;                        // by shard: which row group of its file it is
  std::vector<std::vector<std::uint32_t>> rows;  // by shard: those that are kept; empty: all
  std::string says;                              // which version of a table it is; empty for plain files
  std::string filters;                           // as they are written
  std::uint64_t version = 0;                     // a hash of what `says` says
  timestamp_unit int96 = timestamp_unit::nano;   // that INT96 is read in; tables have microseconds

  /// Reads the metadata of all files. Throws errc::format for what is no Parquet, and for a file with other
  /// columns than the table. If they are of none, the columns are those of all files; see `column_union`.
  parquet_files(storage_facts where, session_view session, timestamp_unit int96_unit,
                const table_facts* table);

  [[nodiscard]] std::uint64_t row_of(std::size_t shard, std::uint64_t sample) const noexcept {
    return rows[shard].empty() ? sample : rows[shard][to_size(sample)];
  }
  [[nodiscard]] std::string describe() const {
    return described(says.empty() ? "parquet" : says, files->size(),
                     text({group.size(), group.size() == 1 ? " row group" : " row groups"}), fields()) +
           filters;
  }
  /// The columns that are shown.
  [[nodiscard]] std::vector<source_field> fields() const {
    std::vector<source_field> made;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const arrow_type& type = type_of(shown[i]);
      made.push_back({leaves[i], shown[i] < stored_leaves() ? type.text() : type.dictionary.front().text()});
    }
    return made;
  }

  /// The leaf of this name, or their number. Throws errc::argument if there are two.
  [[nodiscard]] std::size_t find_leaf(std::string_view name) const {
    return find_arrow_leaf(*all_leaves, name);
  }
  [[nodiscard]] std::size_t stored_leaves() const noexcept { return all_leaves->size() - hive->size(); }
  [[nodiscard]] const arrow_type& type_of(std::size_t leaf) const {
    if (leaf >= stored_leaves()) return hive->type(leaf - stored_leaves());
    return *arrow_leaf_types(*schema)[leaf];
  }
  /// Only these columns are shown.
  void show(const std::vector<std::string>& names) {
    std::vector<std::size_t> found;
    for (const std::string& name : names) found.push_back(shown[place_of(name)]);
    shown = std::move(found);
    leaves = names;
    take({shards.shards().begin(), shards.shards().end()});
  }
  /// Only rows of which a filter is true stay. Reads the filter's column where what files say of row groups
  /// does not decide.
  void keep(const column_filter& filter, session_view session, const batch_limits& limits);

  /// The leaves that a run reads.
  [[nodiscard]] std::vector<std::size_t> wanted(const projection& used) const {
    check_conflicts(*conflicts, leaves, used);
    std::vector<std::size_t> made;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (used.uses(leaves[i])) made.push_back(shown[i]);
    return made;
  }
  /// These leaves of a shard's row group; those that are not wanted are not read, and look like nulls.
  /// Several columns are read at once if there is help.
  [[nodiscard]] std::unique_ptr<arrow_batch> load(session_view session, std::size_t shard,
                                                  std::span<const std::size_t> placed,
                                                  std::span<const std::size_t> wanted,
                                                  const batch_limits& limits,
                                                  batch_cache::sharing* help = nullptr) const;
  /// The columns that are shown.
  [[nodiscard]] std::unique_ptr<arrow_batch> load(session_view session, std::size_t shard,
                                                  std::span<const std::size_t> wanted,
                                                  const batch_limits& limits,
                                                  batch_cache::sharing* help) const {
    return load(session, shard, shown, wanted, limits, help);
  }

 private:
  // `deleted`: the file's rows that are not there any more, ascending.
  void add_groups(const parquet::FileMetaData& metadata, const std::string& name, object_id object,
                  object_version seen, std::span<const std::uint64_t> deleted,
                  std::vector<manifest::shard>& into) {
    std::uint64_t before = 0;
    for (int k = 0; k < metadata.num_row_groups(); ++k) {
      const auto of_group = metadata.RowGroup(k);
      const auto said = [&](std::int64_t value) {
        if (value < 0 || value >> 40 != 0)
          throw error(errc::format, {"row group ", k, " has ", value, " rows or bytes: the file is damaged"});
        return static_cast<std::uint64_t>(value);
      };
      const std::uint64_t count = said(of_group->num_rows());
      if (count >> 32 != 0)
        throw error(errc::limit, {"row group ", k, " has ", count, " rows; 2^32 is the limit"});
      std::uint64_t places = 0, bytes = 0;
      for (int c = 0; c < of_group->num_columns(); ++c) {
        const auto chunk = of_group->ColumnChunk(c);
        bytes += said(chunk->total_compressed_size());
        places = mix64(places ^ static_cast<std::uint64_t>(chunk->data_page_offset())) + bytes;
      }
      std::vector<std::uint32_t> left;
      const auto first = std::ranges::lower_bound(deleted, before);
      const auto last = std::ranges::lower_bound(deleted, before + count);
      if (first != last) {
        auto next = first;
        for (std::uint64_t row = 0; row < count; ++row) {
          if (next != last && *next == before + row)
            ++next;
          else
            left.push_back(static_cast<std::uint32_t>(row));
          places = mix64(places + left.size());
        }
        if (left.empty()) {
          before += count;
          continue;
        }
      }
      into.push_back({name, bytes, left.empty() ? count : left.size(), said(of_group->total_byte_size()),
                      mix64(places + count), seen.stamp});
      versions.push_back(seen);
      objects.push_back(object);
      group.push_back(k);
      rows_before.push_back(before);
      rows.push_back(std::move(left));
      before += count;
    }
    if (!deleted.empty() && deleted.back() >= before)
      throw error(errc::format, {"the table says that row ", deleted.back(),
                                 " of the file is deleted, and the file has ", before, " rows"});
  }

  // Fields in lists that the table does not have any more are marked.
  [[nodiscard]] static std::string with_deleted(const arrow_type& type) {
    std::string said = type.text();
    for (std::size_t at = 0; (at = said.find('\0', at)) != said.npos;) said.replace(at, 1, "deleted ");
    return said;
  }
  // By leaf of the dataset, also those of folders that are in the file, too.
  [[nodiscard]] std::vector<std::vector<int>> columns_of(const parquet_file& file, const arrow_type& own,
                                                         std::span<const std::string> paths) const {
    const std::vector<std::string> there = arrow_leaf_paths(own);
    if (std::ranges::equal(there, paths)) return *file.columns;
    std::map<std::string_view, std::size_t> places;
    for (std::size_t i = 0; i < there.size(); ++i) places.emplace(there[i], i);
    std::vector<std::vector<int>> ordered(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (const auto at = places.find(paths[i]); at != places.end()) ordered[i] = (*file.columns)[at->second];
    return ordered;
  }
  static void add_columns(const parquet::arrow::SchemaField& field, std::vector<int>& into) {
    if (field.is_leaf()) into.push_back(field.column_index);
    for (const auto& child : field.children) add_columns(child, into);
  }
  static void add_leaves(const parquet::arrow::SchemaField& field, std::vector<std::vector<int>>& into) {
    if (!field.is_leaf() && field.field->type()->id() == arrow::Type::STRUCT) {
      for (const auto& child : field.children) add_leaves(child, into);
      return;
    }
    into.emplace_back();
    add_columns(field, into.back());
  }
  // Those of a field, and of what it consists of, as the type that is made of it has them.
  static void add_ids(const arrow::Field& field, std::vector<int>& into) {
    const auto id = field.HasMetadata() ? field.metadata()->Get("PARQUET:field_id")
                                        : arrow::Result<std::string>(std::string("-1"));
    into.push_back(id.ok() ? std::atoi(id->c_str()) : -1);
    const arrow::DataType* type = field.type().get();
    while (type->id() == arrow::Type::EXTENSION)
      type = static_cast<const arrow::ExtensionType&>(*type).storage_type().get();
    for (const auto& child : type->fields()) add_ids(*child, into);
  }
  [[nodiscard]] parquet_file open(session_view session, object_id object, arrow_type& root,
                                  std::vector<int>& ids) const {
    parquet_file made;
    std::vector<std::vector<int>> found;
    const parquet_memory unused(0);
    read_parquet(session, object, unused, 0, [&](const std::shared_ptr<parquet_input>& input) {
      // Metadata go on using the memory pool that they were read with: it must be Arrow's own.
      const auto reader = parquet::ParquetFileReader::Open(input);
      made.metadata = reader->metadata();
      parquet::arrow::SchemaManifest columns;
      ARROW_RETURN_NOT_OK(parquet::arrow::SchemaManifest::Make(
          made.metadata->schema(), made.metadata->key_value_metadata(), reads_as(), &columns));
      std::vector<std::shared_ptr<arrow::Field>> fields;
      for (const auto& field : columns.schema_fields) {
        fields.push_back(field.field);
        add_ids(*field.field, ids);
        add_leaves(field, found);
      }
      root = parquet_schema(arrow::Schema(std::move(fields)));
      return arrow::Status::OK();
    });
    made.columns.reset(new std::vector<std::vector<int>>(std::move(found)));
    return made;
  }
  [[nodiscard]] parquet::ArrowReaderProperties reads_as() const {
    parquet::ArrowReaderProperties how;
    how.set_coerce_int96_timestamp_unit(static_cast<arrow::TimeUnit::type>(int96));
    return how;
  }
  // Row groups of which all but the manifest is in its place.
  void take(std::vector<manifest::shard> groups) {
    shards = manifest(std::move(groups));
    std::string what = schema->text();
    for (const std::string& name : leaves) append(what, {";", name});
    what += filters;
    std::uint64_t parts = version;
    for (const object_id object : objects) parts = mix64(parts + hive->mark(object));
    mark = hash_words(hash_bytes(mix64(0x706172717565740a), bytes_of(what)),
                      std::array{shards.fingerprint(), parts});
  }
  // Files that have the same columns at the same places share what is known of it.
  static void keep_columns(std::vector<std::vector<int>> ordered, std::size_t i,
                           std::vector<parquet_file>& found) {
    if (i != 0 && ordered == *found[i - 1].columns)
      found[i].columns = found[i - 1].columns;
    else
      found[i].columns.reset(new std::vector<std::vector<int>>(std::move(ordered)));
  }
  /// Throws errc::format for a file of other columns than the table.
  void fit_to_table(const storage_facts& where, const table_facts& table,
                    const std::vector<std::string>& names, const std::vector<arrow_type>& schemas,
                    std::vector<parquet_file>& found);
};

inline void parquet_files::fit_to_table(const storage_facts& where, const table_facts& table,
                                        const std::vector<std::string>& names,
                                        const std::vector<arrow_type>& schemas,
                                        std::vector<parquet_file>& found) {
  const std::vector<const arrow_type*> types = arrow_leaf_types(*schema);
  const std::vector<std::string> paths = arrow_leaf_paths(*schema);
  std::vector<std::string> in_order = paths;
  std::ranges::sort(in_order);
  if (const auto twice = std::ranges::adjacent_find(in_order); twice != in_order.end())
    throw error(errc::argument, {"the table has two columns or fields of structs called '", *twice, "'"});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<std::string> others = arrow_leaf_paths(schemas[i]);
    const std::vector<const arrow_type*> other_types = arrow_leaf_types(schemas[i]);
    // The columns may be in another order; a table may have got columns later.
    std::vector<std::vector<int>> ordered;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto at = static_cast<std::size_t>(std::ranges::find(others, paths[k]) - others.begin());
      ordered.push_back(at == others.size() ? std::vector<int>() : (*found[i].columns)[at]);
      if (at == others.size() && i < table.must_have.size() &&
          std::ranges::find(table.must_have[i], paths[k], &arrow_path_part) != table.must_have[i].end())
        throw error(errc::argument,
                    {"the file has no column '", names[k],
                     "', whose value only its partition says, and other files have it; such tables are not "
                     "read until their files are written anew"})
            .in_file(where.names[i]);
      const table_fit fit =
          at == others.size() ? table_fit::as_they_are : fit_in_table(*other_types[at], *types[k]);
      found[i].converts = found[i].converts || fit == table_fit::converted;
      if (fit == table_fit::none)
        throw error(errc::format, {"the column '", names[k], "' is of type ", with_deleted(*other_types[at]),
                                   " in the file, and of type ", types[k]->text(), " in the table"})
            .in_file(where.names[i]);
    }
    keep_columns(std::move(ordered), i, found);
  }
  for (std::size_t i = 0; i < hive->size(); ++i)
    if (const std::string& name = hive->type(i).name; std::ranges::find(names, name) != names.end())
      throw error(errc::format,
                  {"the column '", name, "' is in the file, and in the names of its folders, too"})
          .in_file(where.names[0]);
}

inline parquet_files::parquet_files(storage_facts where, session_view session, timestamp_unit int96_unit,
                                    const table_facts* table) {
  if (where.names.empty() && table == nullptr)
    throw error(errc::argument, "a dataset needs at least one file");
  int96 = table != nullptr ? timestamp_unit::micro : int96_unit;
  const std::size_t count = where.names.size();
  std::vector<parquet_file> found(count);
  std::vector<arrow_type> schemas(count);
  std::vector<object_version> known(count);
  ends.resize(count);
  constexpr std::size_t max_in_flight = 16;
  for_each_in_parallel(count, std::min(count, max_in_flight), [&](std::size_t i) {
    const auto object = static_cast<object_id>(i);
    reading_object(session, object, where.names[i], [&] {
      known[i] = session.version(object);
      std::vector<int> ids;
      found[i] = open(session, object, schemas[i], ids);
      if (table != nullptr) name_as_in_table(*table, schemas[i], ids);
      ends[i] = ends_of(session, object, known[i].size);
    });
  });
  std::vector<std::string> names;
  if (table != nullptr) {
    hive.reset(new hive_columns(table->part_types, table->part_values));
    schema.reset(new arrow_type(table->schema));
    conflicts.reset(new std::vector<column_conflict>());
    names = arrow_leaf_names(*schema);
    fit_to_table(where, *table, names, schemas, found);
    for (std::size_t i = 0; i < hive->size(); ++i) names.push_back(hive->type(i).name);
  } else {
    column_union all;
    for (std::size_t i = 0; i < count; ++i) all.add(schemas[i], where.names[i]);
    arrow_type together = all.schema();
    hive_columns folders(where.names);
    for (std::size_t i = 0; i < folders.size(); ++i) {
      // A column that is in files and in the names of their folders has the folders' values, of the files'
      // type.
      const auto at = std::ranges::find(together.children, folders.type(i).name, &arrow_type::name);
      if (at == together.children.end()) continue;
      folders.give_type(i, *at);
      together.children.erase(at);
    }
    hive.reset(new hive_columns(std::move(folders)));
    schema.reset(new arrow_type(std::move(together)));
    conflicts.reset(new std::vector<column_conflict>(all.conflicts()));
    names = arrow_leaf_names(*schema);
    for (std::size_t i = 0; i < hive->size(); ++i) names.push_back(hive->type(i).name);
    std::vector<std::string> paths = arrow_leaf_paths(*schema);
    for (std::size_t i = 0; i < hive->size(); ++i) paths.push_back(arrow_path_part(hive->type(i).name));
    for (std::size_t i = 0; i < count; ++i) {
      found[i].widens = !schemas[i].reads_like(*schema);
      keep_columns(columns_of(found[i], schemas[i], paths), i, found);
    }
  }
  if (table != nullptr) {
    says = table->says;
    version = table->mark;
  }
  std::vector<manifest::shard> groups;
  for (std::size_t i = 0; i < count; ++i) {
    in_file(where.names[i], [&] {
      ask_parquet([&] {
        add_groups(*found[i].metadata, where.names[i], static_cast<object_id>(i), known[i],
                   table != nullptr && i < table->deleted.size() ? std::span(table->deleted[i])
                                                                 : std::span<const std::uint64_t>(),
                   groups);
      });
    });
  }
  leaves = names;
  for (std::size_t i = 0; i < leaves.size(); ++i) shown.push_back(i);
  all_leaves.reset(new std::vector<std::string>(std::move(names)));
  files.reset(new std::vector<parquet_file>(std::move(found)));
  take(std::move(groups));
}

}  // namespace penstock::inline v0_1::detail
