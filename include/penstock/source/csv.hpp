// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<arrow/csv/reader.h>)
#error "penstock/source/csv.hpp needs Arrow C++: link penstock::arrow"
#endif

#include <penstock/core/named_split.hpp>
#include <penstock/core/random.hpp>
#include <penstock/source/files/data_folder.hpp>
#include <penstock/source/files/file_pattern.hpp>
#include <penstock/source/files/hash_bytes.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/tables/arrow_import.hpp>
#include <penstock/source/tables/table_source.hpp>
#include <penstock/source/text/csv_rows.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>
#include <penstock/storage/session_view.hpp>

// Those of Parquet take longer to compile than all else here.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/csv/options.h>
#include <arrow/csv/reader.h>
#include <arrow/io/memory.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <exception>
#include <new>

namespace penstock::inline v0_1 {

/// Options of `csv` and `tsv`.
struct csv_options {
  char delimiter = ',';
  char quote = '"';    ///< around values with delimiters or line ends; doubled within them
  char escape = '\0';  ///< such as '\\'; 0: none
  /// The columns' names, for files whose first line has none.
  std::vector<std::string> columns = {};
  /// Columns whose types are not guessed: {{"label", "int32"}, {"zip", "string"}}. `bool`, `int8` to
  /// `uint64`, `float`, `double`, `string`, `binary`, `date32`, `timestamp[us]` (or `s`, `ms`, `ns`).
  std::vector<std::pair<std::string, std::string>> types = {};
  /// What stands for a missing value, in columns of text, too; empty: nothing and what pandas takes for it
  /// ("NA", "NaN", "null" and others), in all columns but those of text.
  std::vector<std::string> nulls = {};
  /// The bytes of parsed rows that a run keeps in memory, all workers together.
  std::uint64_t keep = 1_GiB;
};

namespace detail {

inline void check_csv(const arrow::Status& done) {
  if (!done.ok()) throw error(errc::format, {"Arrow cannot read it: ", arrow_message(done.message())});
}

/// The type that values of two are read as: Arrow's guess if it had seen both.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> joined_csv_type(
    const std::shared_ptr<arrow::DataType>& a, const std::shared_ptr<arrow::DataType>& b) {
  using type = arrow::Type;
  if (a->Equals(*b) || b->id() == type::NA) return a;
  if (a->id() == type::NA) return b;
  const auto are = [&](type::type one, type::type other) {
    return (a->id() == one && b->id() == other) || (a->id() == other && b->id() == one);
  };
  if (are(type::INT64, type::DOUBLE)) return arrow::float64();
  if (are(type::DATE32, type::TIMESTAMP)) return a->id() == type::TIMESTAMP ? a : b;
  if (are(type::TIMESTAMP, type::TIMESTAMP)) return arrow::timestamp(arrow::TimeUnit::NANO);
  return a->id() == type::BINARY || b->id() == type::BINARY ? arrow::binary() : arrow::utf8();
}

/// Rows of a file that are parsed together.
struct csv_piece {
  std::uint64_t begin = 0, size = 0;
};

/// The files of a dataset of CSV, as part of a plan. A shard is a piece of some rows.
struct csv_files : table_files {
  csv_options options;
  std::vector<csv_piece> pieces;                  // by shard
  std::vector<std::vector<std::string>> columns;  // by object, in the file's order
  std::vector<std::shared_ptr<arrow::DataType>> types;
  arrow_type schema;

  /// Reads and parses all files: where rows are, and of which types.
  csv_files(storage_facts where, session_view session, csv_options given);

  [[nodiscard]] std::string describe() const {
    return described("csv", columns.size(), text({shards.bytes(), " bytes"}), fields());
  }
  [[nodiscard]] std::vector<source_field> fields() const {
    const std::vector<std::string> names = arrow_leaf_names(schema);
    const std::vector<const arrow_type*> leaf_types = arrow_leaf_types(schema);
    std::vector<source_field> made;
    for (std::size_t i = 0; i < names.size(); ++i) made.push_back({names[i], leaf_types[i]->text()});
    return made;
  }

  /// The columns that a run reads.
  [[nodiscard]] std::vector<std::size_t> wanted(const projection& used) const {
    std::vector<std::size_t> made;
    for (std::size_t i = 0; i < leaves.size(); ++i)
      if (used.uses(leaves[i])) made.push_back(i);
    return made;
  }
  /// The rows of a shard; columns that are not wanted look like nulls.
  [[nodiscard]] std::unique_ptr<arrow_batch> load(session_view session, std::size_t shard,
                                                  std::span<const std::size_t> wanted, const batch_limits&,
                                                  batch_cache::sharing*) const;

 private:
  static constexpr std::size_t piece_size = 1 << 20;
  static constexpr std::uint64_t max_of_row = 256_MiB;

  /// What a pass over a file found.
  struct found_file {
    std::vector<std::string> columns;
    std::vector<csv_piece> pieces;
    std::vector<std::uint64_t> rows;
    std::vector<std::shared_ptr<arrow::DataType>> types;
    std::uint64_t content = 0;
  };
  [[nodiscard]] found_file look(session_view session, object_id object, std::uint64_t size) const;
  void take_types(const std::vector<std::string>& names, const arrow::Schema& piece,
                  std::vector<std::shared_ptr<arrow::DataType>>& into) const {
    into.resize(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& type = piece.field(static_cast<int>(i))->type();
      into[i] = into[i] ? joined_csv_type(into[i], type) : type;
    }
  }
  [[nodiscard]] csv_marks marks() const noexcept {
    return {options.delimiter, options.quote, options.escape};
  }
  /// `names`: of the columns; none: they are in the first row. `wanted`: the columns to read; none: all.
  [[nodiscard]] std::shared_ptr<arrow::Table> parse(std::string_view rows,
                                                    const std::vector<std::string>& names,
                                                    const std::vector<std::string>& wanted) const {
    auto reading = arrow::csv::ReadOptions::Defaults();
    reading.use_threads = false;
    reading.column_names = names;
    reading.block_size = static_cast<std::int32_t>(std::max<std::size_t>(rows.size(), 1));
    auto parsing = arrow::csv::ParseOptions::Defaults();
    parsing.delimiter = options.delimiter;
    parsing.quote_char = options.quote;
    parsing.escaping = options.escape != '\0';
    if (parsing.escaping) parsing.escape_char = options.escape;
    parsing.newlines_in_values = true;
    auto converting = arrow::csv::ConvertOptions::Defaults();
    converting.include_columns = wanted;
    if (!options.nulls.empty()) {
      converting.null_values = options.nulls;
      converting.strings_can_be_null = true;
    }
    for (std::size_t i = 0; i < types.size(); ++i)
      if (types[i]) converting.column_types[leaves[i]] = types[i];
    std::shared_ptr<arrow::Table> made;
    try {
      check_csv([&]() -> arrow::Status {
        const auto input = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
            reinterpret_cast<const std::uint8_t*>(rows.data()), static_cast<std::int64_t>(rows.size())));
        ARROW_ASSIGN_OR_RAISE(const auto reader,
                              arrow::csv::TableReader::Make(arrow::io::default_io_context(), input, reading,
                                                            parsing, converting));
        ARROW_ASSIGN_OR_RAISE(made, reader->Read());
        return arrow::Status::OK();
      }());
    } catch (const error&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& e) {
      throw error(errc::format, {"Arrow cannot read it: ", arrow_message(e.what())});
    }
    return made;
  }
};

[[nodiscard]] inline std::shared_ptr<arrow::DataType> csv_type_of(const std::string& column,
                                                                  const std::string& name) {
  using arrow::TimeUnit;
  std::string all;
  for (auto type : {arrow::boolean(), arrow::int8(), arrow::int16(), arrow::int32(), arrow::int64(),
                    arrow::uint8(), arrow::uint16(), arrow::uint32(), arrow::uint64(), arrow::float32(),
                    arrow::float64(), arrow::utf8(), arrow::binary(), arrow::date32(),
                    arrow::timestamp(TimeUnit::SECOND), arrow::timestamp(TimeUnit::MILLI),
                    arrow::timestamp(TimeUnit::MICRO), arrow::timestamp(TimeUnit::NANO)}) {
    const std::string called = type->id() == arrow::Type::DATE32 ? "date32" : type->ToString();
    if (called == name) return type;
    append(all, {all.empty() ? "" : ", ", called});
  }
  throw error(errc::argument, {"csv_options::types: the column '", column, "' cannot be of the type '", name,
                               "'; there are ", all});
}

inline csv_files::found_file csv_files::look(session_view session, object_id object,
                                             std::uint64_t size) const {
  found_file made;
  made.columns = options.columns;
  csv_row_ends row_ends(marks());
  std::string pending;  // rows that have no end yet
  std::uint64_t at = 0, begin = 0;
  const auto add = [&](std::size_t count) {
    if (pending.find_first_not_of("\r\n") < count) {  // not blank lines alone
      const std::shared_ptr<arrow::Table> table =
          parse(std::string_view(pending).substr(0, count), made.columns, {});
      take_types(made.columns, *table->schema(), made.types);
      if (table->num_rows() != 0) {
        made.pieces.push_back({begin, count});
        made.rows.push_back(static_cast<std::uint64_t>(table->num_rows()));
      }
    }
    begin += count;
    pending.erase(0, count);
  };
  object_bytes read;
  bool whole = at == size;
  while (!whole || !pending.empty()) {
    const std::size_t seen = pending.size();
    const std::uint64_t next = std::min<std::uint64_t>(piece_size, size - at);
    read = session.range(object, at, next, std::move(read));
    made.content = hash_bytes(made.content, read);
    at += next;
    whole = at == size;
    std::string_view fresh = text_of(read);
    if (begin == 0 && seen == 0 && made.pieces.empty() && fresh.starts_with("\xef\xbb\xbf")) {
      fresh.remove_prefix(3);  // a byte order mark
      begin = 3;
    }
    pending.append(fresh);
    std::size_t done = 0;
    if (made.columns.empty()) {
      // The first line that is none, by itself: it has other types than what follows.
      std::size_t head = 0;
      std::size_t from_here = seen;
      while (from_here < pending.size()) {
        const std::size_t end = row_ends.find(std::string_view(pending).substr(from_here), true);
        if (end == 0) break;
        from_here += end;
        if (pending.find_first_not_of("\r\n") < from_here) {
          head = from_here;
          break;
        }
      }
      if (head == 0 && whole) head = pending.size();
      if (pending.find_first_not_of("\r\n") < head) {
        const auto named = parse(std::string_view(pending).substr(0, head), {}, {});
        for (const auto& field : named->schema()->fields()) made.columns.push_back(field->name());
        pending.erase(0, head);
        begin += head;
        done = row_ends.find(pending, false);
      }
    } else {
      done = seen + row_ends.find(std::string_view(pending).substr(seen), false);
      if (done == seen) done = 0;
    }
    if (whole && row_ends.quoted())
      throw error(errc::format, "a value begins with a quote that nothing closes").at_offset(begin);
    if (whole) done = pending.size();
    if (done != 0) add(done);
    if (pending.size() > max_of_row)
      throw error(errc::limit, {"a row has more than ", max_of_row,
                                " bytes: a quote may be missing, or csv_options::quote be another character"})
          .at_offset(begin);
    if (whole) break;
  }
  if (made.columns.empty())
    throw error(errc::format, "the file is empty, and its first line should have the columns' names");
  return made;
}

inline csv_files::csv_files(storage_facts where, session_view session, csv_options given)
    : options(std::move(given)) {
  if (where.names.empty()) throw error(errc::argument, "a dataset needs at least one file");
  const std::size_t count = where.names.size();
  std::vector<found_file> found(count);
  std::vector<object_version> known(count);
  constexpr std::size_t max_threads = 16;
  for_each_in_parallel(count, std::min(count, max_threads), [&](std::size_t i) {
    const auto object = static_cast<object_id>(i);
    reading_object(session, object, where.names[i], [&] {
      known[i] = session.version(object);
      found[i] = look(session, object, known[i].size);
    });
  });
  leaves = found.front().columns;
  std::vector<std::string> sorted = leaves;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    throw error(errc::format,
                {"two columns are called '", *twice, "'; name them with csv_options{.columns = ...}"})
        .in_file(where.names.front());
  std::vector<std::shared_ptr<arrow::DataType>> joined(leaves.size(), arrow::null());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::string> own = found[i].columns;
    std::ranges::sort(own);
    if (own != sorted)
      throw error(errc::format, {"the file has the columns ", listed(found[i].columns),
                                 ", and the first one, '", where.names.front(), "', has ", listed(leaves)})
          .in_file(where.names[i]);
    for (std::size_t k = 0; k < leaves.size() && !found[i].types.empty(); ++k) {
      const auto at = std::ranges::find(found[i].columns, leaves[k]) - found[i].columns.begin();
      joined[k] = joined_csv_type(joined[k], found[i].types[static_cast<std::size_t>(at)]);
    }
    columns.push_back(std::move(found[i].columns));
  }
  for (const auto& [column, type] : options.types) {
    const auto at = std::ranges::find(leaves, column);
    if (at == leaves.end())
      throw error(errc::argument,
                  {"csv_options::types has the column '", column, "', and there are only ", listed(leaves)});
    joined[static_cast<std::size_t>(at - leaves.begin())] = csv_type_of(column, type);
  }
  types = std::move(joined);
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (std::size_t k = 0; k < leaves.size(); ++k) fields.push_back(arrow::field(leaves[k], types[k]));
  arrow_abi::held<arrow_abi::schema> exported;
  check_csv(arrow::ExportSchema(arrow::Schema(fields), reinterpret_cast<ArrowSchema*>(exported.get())));
  schema = import_arrow_schema(*exported);
  std::vector<manifest::shard> entries;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t before = 0;
    for (std::size_t k = 0; k < found[i].pieces.size(); ++k) {
      const csv_piece& piece = found[i].pieces[k];
      entries.push_back({where.names[i], piece.size, found[i].rows[k], piece.size,
                         mix64(found[i].content + piece.begin), known[i].stamp});
      versions.push_back(known[i]);
      objects.push_back(static_cast<object_id>(i));
      pieces.push_back(piece);
      rows_before.push_back(before);
      before += found[i].rows[k];
    }
  }
  shards = manifest(std::move(entries));
  std::string what = schema.text();
  append(what, {options.delimiter, options.quote, options.escape});
  for (const std::string& one : options.nulls) append(what, {";", one});
  mark = hash_bytes(mix64(shards.fingerprint() ^ 0x637376), bytes_of(what));
}

inline std::unique_ptr<arrow_batch> csv_files::load(session_view session, std::size_t shard,
                                                    std::span<const std::size_t> wanted, const batch_limits&,
                                                    batch_cache::sharing*) const {
  const object_id object = this->object(shard);
  const csv_piece& piece = pieces[shard];
  const std::uint64_t rows = shards.shards()[shard].samples;
  auto made = std::make_unique<arrow_batch>();
  shared<const imported_batch> read_rows;
  std::int64_t bytes = 0;
  reading_object(session, object, path(shard), [&] {
    compare(session, shard);
    if (!wanted.empty()) {
      const object_bytes read = session.range(object, piece.begin, piece.size);
      std::vector<std::string> names;
      for (const std::size_t leaf : wanted) names.push_back(leaves[leaf]);
      const std::shared_ptr<arrow::Table> table = parse(text_of(read), columns[object], names);
      if (static_cast<std::uint64_t>(table->num_rows()) != rows)
        throw error(errc::format, {"the rows from here on are ", table->num_rows(), ", and were ", rows,
                                   " when the dataset was made"})
            .at_offset(piece.begin);
      check_csv([&]() -> arrow::Status {
        ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::RecordBatch> batch, table->CombineChunksToBatch());
        arrow_abi::held<arrow_abi::schema> types_read;
        ARROW_RETURN_NOT_OK(
            arrow::ExportSchema(*batch->schema(), reinterpret_cast<ArrowSchema*>(types_read.get())));
        for (const auto& column : batch->columns())
          for (const auto& one : column->data()->buffers)
            if (one) bytes += one->size();
        arrow_abi::held<arrow_abi::array> exported;
        ARROW_RETURN_NOT_OK(arrow::ExportRecordBatch(*batch, reinterpret_cast<ArrowArray*>(exported.get())));
        read_rows = import_arrow_batch(
            std::move(exported),
            shared<const imported_schema>(new const imported_schema(import_arrow_schema(*types_read))));
        return arrow::Status::OK();
      }());
    }
  });
  const arrow_leaf unread = lacking_leaf(*made, {}, rows);
  made->root.length = rows;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto at = static_cast<std::size_t>(std::ranges::find(wanted, leaf) - wanted.begin());
    made->leaves.push_back(at < wanted.size() ? read_rows->leaves[at] : unread);
  }
  made->kept_bytes = static_cast<std::uint64_t>(bytes);
  made->kept = read_rows;
  return made;
}

}  // namespace detail

/// The source that `csv` and `tsv` make of files.
template <storage Storage>
class csv_source : public detail::table_source<csv_source<Storage>, Storage, detail::csv_files,
                                               detail::kept_batches<detail::csv_files>> {
 public:
  using typename csv_source::table_source::reader;
  static constexpr std::string_view source_name = "csv";

  csv_source(Storage where, csv_options options)
      : csv_source::table_source(std::move(where), std::move(options)) {}

  [[nodiscard]] reader connect(const projection& used = {}) const {
    return reader(this->table(), used, detail::batch_limits{this->table()->options.keep});
  }
};

/// The rows of CSV files, in any order.
///
///     auto rows = csv("reviews/train-*.csv", {.types = {{"label", "int32"}}}) | shuffle(seed(7)) |
///                 decode<field<"text", text>, field<"label", arrow_value<std::int32_t>>>;
///     auto pairs = csv("pairs.csv", {.delimiter = ';', .columns = {"source", "target"}});
///
/// In: a pattern of paths, which is `mapped_file`; a folder, whose files `*.csv` are taken in the order of
/// their paths, with those of folders in it; or any storage, whose objects are the files. Of several splits
/// `csv(folder, split("train"))` reads one; see `split`. Text is UTF-8, values may stand in quotes and
/// contain line ends then, and empty lines are no rows. The first line has the columns' names, unless
/// `csv_options::columns` says them. All files have the same columns, in any order.
/// Out: an open sample with a member for each column, as of `arrow_ipc`: `arrow_value<T>`, or any codec of
/// bytes for texts. The types are what Arrow guesses from all values: int64, bool, date32, timestamp, double,
/// and string for what is none of these; `csv_options::types` says others. A value that stands for none is
/// null.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. Making the plan reads and parses all
/// files once, 16 at once, and remembers where every piece of about 1 MiB of rows begins: `starts`, so that
/// `shuffle` with a window parses each one once.
/// Cost per sample: a piece is read and parsed once, by Arrow, its named columns alone, and shared by all
/// workers; pieces are kept up to `csv_options::keep` bytes. A row is not copied.
/// Errors: errc::format, with the file, for rows of another number of values, a quote that nothing closes,
/// values that are not of the type that was said, and a file of other columns than the first;
/// errc::limit for a row of more than 256 MiB; errc::argument for a type that is not known, a column that is
/// not there, and a folder or storage of several splits; errc::missing for a folder without files or without
/// the split; errc::io.
/// Threads: any number may evaluate, each with its own worker.
/// Source: RFC 4180; Arrow C++, `arrow::csv`.
template <storage Storage>
[[nodiscard]] csv_source<Storage> csv(Storage where, csv_options options = {}) {
  return {detail::one_split(std::move(where), "csv"), std::move(options)};
}
template <storage Storage>
[[nodiscard]] csv_source<Storage> csv(Storage where, const named_split& which, csv_options options = {}) {
  return {detail::one_split(std::move(where), which, "csv"), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> csv(const Text& pattern, csv_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::csv, pattern)), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> csv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  return {mapped_file(detail::data_paths(detail::data_kind::csv, pattern, &which)), std::move(options)};
}

/// The rows of files with tabs between values; otherwise as `csv`. Of a folder, files `*.tsv`.
template <storage Storage>
[[nodiscard]] csv_source<Storage> tsv(Storage where, csv_options options = {}) {
  options.delimiter = '\t';
  return {detail::one_split(std::move(where), "tsv"), std::move(options)};
}
template <storage Storage>
[[nodiscard]] csv_source<Storage> tsv(Storage where, const named_split& which, csv_options options = {}) {
  options.delimiter = '\t';
  return {detail::one_split(std::move(where), which, "tsv"), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> tsv(const Text& pattern, csv_options options = {}) {
  options.delimiter = '\t';
  return {mapped_file(detail::data_paths(detail::data_kind::tsv, pattern)), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> tsv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  options.delimiter = '\t';
  return {mapped_file(detail::data_paths(detail::data_kind::tsv, pattern, &which)), std::move(options)};
}

}  // namespace penstock::inline v0_1
