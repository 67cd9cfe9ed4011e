// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component arrow. It needs penstock.hpp and penstock_json.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<arrow/csv/reader.h>)
#error "penstock_arrow.hpp needs Arrow C++: link penstock::arrow"
#endif
#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock_arrow.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif
#if !__has_include(<nlohmann/json.hpp>)
#error "penstock_arrow.hpp needs nlohmann-json: link penstock::arrow"
#endif
#if !__has_include(<parquet/arrow/writer.h>)
#error "penstock_arrow.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif
#if !__has_include(<arrow/filesystem/filesystem.h>)
#error "penstock_arrow.hpp needs Arrow C++: link penstock::arrow"
#endif
#if !__has_include(<arrow/status.h>)
#error "penstock_arrow.hpp needs Arrow C++: link penstock::arrow"
#endif

#include "penstock.hpp"
#include "penstock_json.hpp"

#include <algorithm>
#include <array>
#include <arrow/api.h>
#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/c/bridge.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/csv/options.h>
#include <arrow/csv/reader.h>
#include <arrow/extension_type.h>
#include <arrow/filesystem/filesystem.h>
#include <arrow/io/interfaces.h>
#include <arrow/io/memory.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <arrow/util/key_value_metadata.h>
#include <atomic>
#include <charconv>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/arrow/writer.h>
#include <parquet/bloom_filter.h>
#include <parquet/bloom_filter_reader.h>
#include <parquet/column_page.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>
#include <span>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// ---- penstock/storage/reads/arrow_errors.hpp

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// What Arrow says, as one line, without the queries of URLs, which may be signatures.
[[nodiscard]] inline std::string arrow_message(std::string_view message) {
  constexpr std::size_t longest = 300;
  std::string line;
  for (std::size_t at = 0; at < message.size() && line.size() < longest;) {
    const std::size_t end = std::min(message.find_first_of(" \t\r\n", at), message.size());
    const std::string_view word = message.substr(at, end - at);
    const std::size_t scheme = word.find("://");
    const std::size_t question = scheme == std::string_view::npos ? scheme : word.find('?', scheme);
    line += word.substr(0, question);
    if (question != std::string_view::npos) line += "?...";
    if (end < message.size()) line += ' ';
    at = end + 1;
  }
  while (line.ends_with(' ')) line.pop_back();
  if (line.size() > longest) line.resize(longest);
  return line;
}

/// The error of a status that is not OK.
[[noreturn, gnu::cold]] inline void throw_arrow(const arrow::Status& status, std::string_view path,
                                                std::optional<std::uint64_t> offset = {}) {
  if (status.IsOutOfMemory()) throw std::bad_alloc();
  const errc code = status.IsCancelled() ? errc::stopped : errc::io;
  error made = error(code, {"Arrow's file system says: ", arrow_message(status.message())})
                   .recurring(code != errc::io || !status.IsIOError());
  made.in_file(path);
  if (offset) made.at_offset(*offset);
  throw made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/text/csv_files.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

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

/// Rows of a file that are parsed together.
struct csv_piece {
  std::uint64_t begin = 0, size = 0;
};

/// The files of a dataset of CSV, as part of a plan. A shard is a piece of some rows.
struct csv_files : known_files {
  csv_options options;
  std::vector<csv_piece> pieces;                  // by shard
  std::vector<std::uint64_t> rows_before;         // by shard: rows of its file in front of it
  std::vector<std::vector<std::string>> columns;  // by object, in the file's order
  std::vector<std::shared_ptr<arrow::DataType>> types;
  std::vector<std::string> leaves;
  arrow_type schema;
  std::uint64_t mark = 0;

  /// Reads and parses all files: where rows are, and of which types.
  csv_files(storage_facts where, session_view session, csv_options given);

  [[nodiscard]] std::uint64_t row_of(std::size_t, std::uint64_t sample) const noexcept { return sample; }
  /// The file without its folder, and the row's number in it: "train.csv:17".
  [[nodiscard]] std::string key_of(std::size_t shard, std::uint64_t row) const {
    const std::string_view name = path(shard);
    return text({name.substr(name.rfind('/') + 1), ":", rows_before[shard] + row});
  }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::vector<source_field> fields() const;

  /// The rows of a shard; columns that are not wanted look like nulls.
  [[nodiscard]] std::unique_ptr<arrow_batch> load(session_view session, std::size_t shard,
                                                  std::span<const std::size_t> wanted) const;

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
                  std::vector<std::shared_ptr<arrow::DataType>>& into) const;
  [[nodiscard]] csv_marks marks() const noexcept {
    return {options.delimiter, options.quote, options.escape};
  }
  /// `names`: of the columns; none: they are in the first row. `wanted`: the columns to read; none: all.
  [[nodiscard]] std::shared_ptr<arrow::Table> parse(std::string_view rows,
                                                    const std::vector<std::string>& names,
                                                    const std::vector<std::string>& wanted) const;
};

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

[[nodiscard]] inline std::shared_ptr<arrow::DataType> csv_type_of(const std::string& column,
                                                                  const std::string& name) {
  const std::pair<std::string_view, std::shared_ptr<arrow::DataType>> known[] = {
      {"bool", arrow::boolean()},
      {"int8", arrow::int8()},
      {"int16", arrow::int16()},
      {"int32", arrow::int32()},
      {"int64", arrow::int64()},
      {"uint8", arrow::uint8()},
      {"uint16", arrow::uint16()},
      {"uint32", arrow::uint32()},
      {"uint64", arrow::uint64()},
      {"float", arrow::float32()},
      {"double", arrow::float64()},
      {"string", arrow::utf8()},
      {"binary", arrow::binary()},
      {"date32", arrow::date32()},
      {"timestamp[s]", arrow::timestamp(arrow::TimeUnit::SECOND)},
      {"timestamp[ms]", arrow::timestamp(arrow::TimeUnit::MILLI)},
      {"timestamp[us]", arrow::timestamp(arrow::TimeUnit::MICRO)},
      {"timestamp[ns]", arrow::timestamp(arrow::TimeUnit::NANO)}};
  std::string all;
  for (const auto& [called, type] : known) {
    if (called == name) return type;
    append(all, {all.empty() ? "" : ", ", called});
  }
  throw error(errc::argument, {"csv_options::types: the column '", column, "' cannot be of the type '", name,
                               "'; there are ", all});
}

inline std::shared_ptr<arrow::Table> csv_files::parse(std::string_view rows,
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

inline void csv_files::take_types(const std::vector<std::string>& names, const arrow::Schema& piece,
                                  std::vector<std::shared_ptr<arrow::DataType>>& into) const {
  into.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& type = piece.field(static_cast<int>(i))->type();
    into[i] = into[i] ? joined_csv_type(into[i], type) : type;
  }
}

inline csv_files::found_file csv_files::look(session_view session, object_id object,
                                             std::uint64_t size) const {
  found_file made;
  made.columns = options.columns;
  csv_row_ends row_ends(marks());
  std::string pending;  // rows that have no end yet
  std::uint64_t at = 0, begin = 0;
  const auto add = [&](std::size_t count) {
    const bool blank = pending.find_first_not_of("\r\n") >= count;
    if (blank) {
      begin += count;
      pending.erase(0, count);
      return;
    }
    const std::shared_ptr<arrow::Table> table =
        parse(std::string_view(pending).substr(0, count), made.columns, {});
    take_types(made.columns, *table->schema(), made.types);
    if (table->num_rows() != 0) {
      made.pieces.push_back({begin, count});
      made.rows.push_back(static_cast<std::uint64_t>(table->num_rows()));
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
    try {
      known[i] = session.version(object);
      found[i] = look(session, object, known[i].size);
      session.confirm(object);
    } catch (error& e) {
      session.confirm(object);
      e.in_file(where.names[i]);
      throw;
    }
  });
  leaves = found.front().columns;
  const auto listed = [](const std::vector<std::string>& names) {
    std::string line;
    for (const std::string& one : names) append(line, {line.empty() ? "" : ", ", one});
    return line;
  };
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

inline std::vector<source_field> csv_files::fields() const {
  const std::vector<std::string> names = arrow_leaf_names(schema);
  const std::vector<const arrow_type*> leaf_types = arrow_leaf_types(schema);
  std::vector<source_field> made;
  for (std::size_t i = 0; i < names.size(); ++i) made.push_back({names[i], leaf_types[i]->text()});
  return made;
}

inline std::string csv_files::describe() const {
  std::string line = text({"csv(", columns.size(), columns.size() == 1 ? " file, " : " files, ",
                           shards.bytes(), " bytes): ", shards.samples(), " rows of "});
  const std::vector<source_field> all = fields();
  for (std::size_t i = 0; i < all.size(); ++i)
    append(line, {i == 0 ? "" : ", ", all[i].name, " (", all[i].type, ")"});
  return line;
}

/// What a batch of rows of text lies in.
struct csv_batch {
  imported_schema schema;
  shared<const imported_batch> batch;
  arrow_type nothing = arrow_type::of_format("n");
  arrow_column unread;
};

inline std::unique_ptr<arrow_batch> csv_files::load(session_view session, std::size_t shard,
                                                    std::span<const std::size_t> wanted) const {
  const object_id object = this->object(shard);
  const csv_piece& piece = pieces[shard];
  const std::uint64_t rows = shards.shards()[shard].samples;
  auto made = std::make_unique<arrow_batch>();
  const shared<csv_batch> memory(new csv_batch());
  std::int64_t bytes = 0;
  try {
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
        memory->schema.root = import_arrow_schema(*types_read);
        memory->schema.leaves = names;
        for (const auto& column : batch->columns())
          for (const auto& one : column->data()->buffers)
            if (one) bytes += one->size();
        arrow_abi::held<arrow_abi::array> exported;
        ARROW_RETURN_NOT_OK(arrow::ExportRecordBatch(*batch, reinterpret_cast<ArrowArray*>(exported.get())));
        memory->batch = import_arrow_batch(std::move(exported), memory->schema);
        return arrow::Status::OK();
      }());
    }
    session.confirm(object);
  } catch (error& e) {
    session.confirm(object);
    e.in_file(path(shard));
    throw;
  }
  memory->unread.type = &memory->nothing;
  memory->unread.length = rows;
  made->root.length = rows;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto at = static_cast<std::size_t>(std::ranges::find(wanted, leaf) - wanted.begin());
    if (at < wanted.size())
      made->leaves.push_back(memory->batch->leaves[at]);
    else
      made->leaves.push_back({&memory->unread, 0, {}});
  }
  made->kept_bytes = static_cast<std::uint64_t>(bytes);
  made->kept = memory;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/csv.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// The pieces of a run that are in memory.
class csv_batches {
 public:
  static constexpr bool in_place = false;

  template <class Known>
  csv_batches(const shared<const Known>& files, const projection& used)
      : files_(files), kept_(std::make_unique<batch_cache>(files->pieces.size(), files->options.keep)) {
    for (std::size_t i = 0; i < files->leaves.size(); ++i)
      if (used.uses(files->leaves[i])) wanted_.push_back(i);
  }

  [[nodiscard]] const arrow_batch& get(session_view session, std::size_t shard,
                                       shared<const arrow_batch>& held) const {
    held = kept_->get(shard, [&](std::size_t which, batch_cache::sharing&) {
      return static_cast<const arrow_batch*>(files_->load(session, which, wanted_).release());
    });
    return *held;
  }
  [[nodiscard]] static const arrow_batch* find(std::size_t) noexcept { return nullptr; }
  [[nodiscard]] shared<const arrow_batch> find_kept(std::size_t shard) const noexcept {
    return kept_->find(shard);
  }

 private:
  shared<const csv_files> files_;
  std::vector<std::size_t> wanted_;
  std::unique_ptr<batch_cache> kept_;
};

}  // namespace detail

/// The source that `csv` and `tsv` make of files.
template <storage Storage>
class csv_source : public opens_as_plan<csv_source<Storage>> {
  using files = detail::stored_in<detail::csv_files, Storage>;

 public:
  using penstock_part = source_tag;
  using element = detail::arrow_row<detail::csv_files>;
  static constexpr std::string_view source_name = "csv";
  using reader = detail::arrow_rows<Storage, detail::csv_files, files, detail::csv_batches>;

  csv_source(Storage where, csv_options options) {
    auto session = where.connect();
    detail::csv_files found(facts_of(where), session, std::move(options));
    table_.reset(new const files(std::move(where), std::move(found)));
  }

  /// The rows of all files.
  [[nodiscard]] std::uint64_t size() const noexcept { return table_->shards.samples(); }
  /// Where the pieces of about 1 MiB begin that are parsed together.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return table_->shards.starts();
  }
  /// The pieces, as shards.
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return table_->shards; }
  /// Covers the names and bytes of all files, the columns' types, and the options that say what values are.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return table_->mark; }
  [[nodiscard]] std::string describe() const { return table_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const { return table_->fields(); }
  /// The columns' types, as the children of a struct.
  [[nodiscard]] const arrow_type& schema() const noexcept { return table_->schema; }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(table_, used); }

 private:
  shared<const files> table_;
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
/// the split; errc::io. A value that does not have the type that is said for it is an error when its piece is
/// parsed.
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
  return {mapped_file(detail::csv_paths(detail::to_pattern(pattern))), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> csv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  return {mapped_file(detail::csv_paths(detail::to_pattern(pattern), &which)), std::move(options)};
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
  return {mapped_file(detail::tsv_paths(detail::to_pattern(pattern))), std::move(options)};
}
template <detail::pattern_text Text>
[[nodiscard]] csv_source<mapped_file> tsv(const Text& pattern, const named_split& which,
                                          csv_options options = {}) {
  options.delimiter = '\t';
  return {mapped_file(detail::tsv_paths(detail::to_pattern(pattern), &which)), std::move(options)};
}

}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_input.hpp

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// Memory for what is read of one row group: counted, and no more than a limit.
class parquet_memory : public arrow::MemoryPool {
 public:
  explicit parquet_memory(std::uint64_t limit) noexcept : limit_(limit) {}

  using arrow::MemoryPool::Allocate;
  using arrow::MemoryPool::Free;
  using arrow::MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(take(size));
    const arrow::Status done = below_->Allocate(size, alignment, out);
    if (!done.ok()) bytes_ -= size;
    return done;
  }
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** at) override {
    ARROW_RETURN_NOT_OK(take(new_size - old_size));
    const arrow::Status done = below_->Reallocate(old_size, new_size, alignment, at);
    if (!done.ok()) bytes_ -= new_size - old_size;
    return done;
  }
  void Free(std::uint8_t* at, std::int64_t size, std::int64_t alignment) override {
    below_->Free(at, size, alignment);
    bytes_ -= size;
  }
  [[nodiscard]] std::int64_t bytes_allocated() const override { return bytes_; }
  [[nodiscard]] std::int64_t total_bytes_allocated() const override { return all_bytes_; }
  [[nodiscard]] std::int64_t num_allocations() const override { return count_; }
  [[nodiscard]] std::string backend_name() const override { return below_->backend_name(); }

  /// Whether something was refused because of the limit.
  [[nodiscard]] bool refused() const noexcept { return refused_; }

 private:
  [[nodiscard]] arrow::Status take(std::int64_t size) {
    const std::int64_t all = bytes_ += size;
    if (all > 0 && static_cast<std::uint64_t>(all) > limit_) {
      bytes_ -= size;
      refused_ = true;
      return arrow::Status::OutOfMemory("more than the limit");
    }
    if (size > 0) all_bytes_ += size;
    ++count_;
    return arrow::Status::OK();
  }

  arrow::MemoryPool* below_ = arrow::default_memory_pool();
  std::uint64_t limit_;
  std::atomic<std::int64_t> bytes_{0}, all_bytes_{0}, count_{0};
  std::atomic<bool> refused_{false};
};

/// An object of a storage as a file of Arrow. Bytes that a session shows in place are not copied.
class parquet_input : public arrow::io::RandomAccessFile {
 public:
  parquet_input(session_view session, object_id object)
      : session_(session), object_(object), size_(session.size(object)) {}
  ~parquet_input() override = default;

  /// Lets no read begin, and waits for those that Arrow has begun in threads of its own. Then rethrows what
  /// the storage threw first, if it did.
  void finish(bool failed) {
    std::unique_lock lock(mutex_);
    ended_ = true;
    idle_.wait(lock, [&] { return reads_ == 0; });
    std::exception_ptr first = std::exchange(failure_, nullptr);
    lock.unlock();
    if (failed && first) std::rethrow_exception(std::move(first));
  }

  /// Whether the storage failed to give something.
  [[nodiscard]] bool failed() {
    const std::scoped_lock lock(mutex_);
    return failure_ != nullptr;
  }

  arrow::Status Close() override { return arrow::Status::OK(); }
  [[nodiscard]] bool closed() const override { return false; }
  [[nodiscard]] arrow::Result<std::int64_t> Tell() const override { return at_; }
  arrow::Status Seek(std::int64_t position) override {
    at_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> GetSize() override { return static_cast<std::int64_t>(size_); }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t done, ReadAt(at_, count, into));
    at_ += done;
    return done;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> done, ReadAt(at_, count));
    at_ += done->size();
    return done;
  }
  using arrow::io::RandomAccessFile::ReadAt;
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count, void* into) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, within(position, count));
    ARROW_RETURN_NOT_OK(guarded([&] {
      session_.read(object_, static_cast<std::uint64_t>(position),
                    mutable_bytes(static_cast<std::byte*>(into), static_cast<std::size_t>(size)));
    }));
    return size;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t size, within(position, count));
    std::shared_ptr<arrow::Buffer> made;
    if (session_.views()) {
      ARROW_RETURN_NOT_OK(guarded([&] {
        const bytes_view shown =
            session_.view(object_, static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(size));
        made = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(shown.data()),
                                               static_cast<std::int64_t>(shown.size()));
      }));
      return made;
    }
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::Buffer> room, arrow::AllocateBuffer(size));
    ARROW_RETURN_NOT_OK(ReadAt(position, size, room->mutable_data()).status());
    return room;
  }

 private:
  [[nodiscard]] arrow::Result<std::int64_t> within(std::int64_t position, std::int64_t count) const {
    if (position < 0 || count < 0 || static_cast<std::uint64_t>(position) > size_)
      return arrow::Status::IOError("a range outside of the file");
    return std::min(count, static_cast<std::int64_t>(size_) - position);
  }
  // The exception is reported outside of the handler, so that the last of two threads does not free it.
  template <class Call>
  [[nodiscard]] arrow::Status guarded(Call&& call) {
    {
      const std::scoped_lock lock(mutex_);
      if (ended_) return arrow::Status::Cancelled("the read is not needed any more");
      ++reads_;
    }
    std::exception_ptr thrown;
    try {
      call();
    } catch (...) {
      thrown = std::current_exception();
    }
    const bool failed = thrown != nullptr;
    const std::scoped_lock lock(mutex_);
    if (failed && !failure_) failure_ = std::move(thrown);
    if (--reads_ == 0) idle_.notify_all();
    return failed ? arrow::Status::IOError("the storage failed") : arrow::Status::OK();
  }

  session_view session_;
  object_id object_;
  std::uint64_t size_;
  std::int64_t at_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::size_t reads_ = 0;  // in progress
  bool ended_ = false;
  std::exception_ptr failure_;
};

/// How pages are read: with their checksums compared, if the file has some.
[[nodiscard]] inline parquet::ReaderProperties parquet_pages(arrow::MemoryPool* pool, bool checksums) {
  parquet::ReaderProperties how(pool);
  how.set_page_checksum_verification(checksums);
  return how;
}

/// Calls `work(input)`, in which Arrow reads an object. What the storage throws is thrown, and what Arrow
/// throws or returns becomes an error: errc::limit if `memory` refused something, otherwise errc::format.
template <class Work>
void read_parquet(session_view session, object_id object, const parquet_memory& memory, std::uint64_t limit,
                  Work&& work) {
  const auto input = std::make_shared<parquet_input>(session, object);
  std::string said;
  bool failed = false;
  try {
    const arrow::Status done = work(input);
    failed = !done.ok();
    if (failed) said = done.message();
  } catch (const error&) {
    input->finish(false);
    throw;
  } catch (const std::bad_alloc&) {
    input->finish(false);
    throw;
  } catch (const std::exception& e) {
    failed = true;
    said = e.what();
  }
  input->finish(failed);
  if (!failed) return;
  if (memory.refused())
    throw error(errc::limit,
                {"the row group needs more than ", limit,
                 " bytes of memory; raise it with parquet_options{.limit = ...}, or write smaller "
                 "row groups"});
  const object_bytes head = session.range(object, 0, std::min<std::uint64_t>(session.size(object), 512));
  if (!text_of(head).starts_with("PAR") && !known_format(head).empty())
    throw not_a("a Parquet file", head, {});
  throw error(errc::format, {"Arrow cannot read it: ", arrow_message(said)});
}

/// Calls `work()`, which asks for metadata; what Arrow throws becomes an error.
template <class Work>
decltype(auto) ask_parquet(Work&& work) {
  try {
    return work();
  } catch (const parquet::ParquetException& e) {
    throw error(errc::format, {"Arrow cannot read it: ", arrow_message(e.what())});
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_files.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

static_assert(static_cast<int>(timestamp_unit::second) == arrow::TimeUnit::SECOND &&
                  static_cast<int>(timestamp_unit::milli) == arrow::TimeUnit::MILLI &&
                  static_cast<int>(timestamp_unit::micro) == arrow::TimeUnit::MICRO &&
                  static_cast<int>(timestamp_unit::nano) == arrow::TimeUnit::NANO,
              "penstock: the units of timestamps must have Arrow's numbers");

/// How much memory a run may keep, and reading a row group may take; and whether checksums are compared.
struct parquet_limits {
  std::uint64_t keep, group;
  bool checksums = true;
};

/// A file of a dataset.
struct parquet_file {
  std::shared_ptr<parquet::FileMetaData> metadata;
  shared<const std::vector<std::vector<int>>> columns;  // by leaf of the dataset: the file's columns
  bool converts = false;  // some of which have other types in the table; see as_in_table
  bool widens = false;    // some of which may have other types in the dataset; see widen_leaf
};

/// The files of a dataset of Parquet, as part of a plan. A shard is a row group, or what is left of it.
struct parquet_files : known_files {
  shared<const std::vector<parquet_file>> files;  // by object
  shared<const arrow_type> schema;                // of the files together, without what folders say, too
  shared<const std::vector<column_conflict>> conflicts;  // what cannot be read of it
  shared<const hive_columns> hive;
  shared<const std::vector<std::string>>
      all_leaves;                                // structs replaced by their fields; then those of folders
  std::vector<std::string> leaves;               // those that a row shows
  std::vector<std::size_t> shown;                // their numbers among all
  std::vector<int> group;                        // by shard: which row group of its file it is
  std::vector<std::uint64_t> rows_before;        // by shard: rows of its file in front of it
  std::vector<std::vector<std::uint32_t>> rows;  // by shard: those that are kept; empty: all
  std::string says;                              // which version of a table it is; empty for plain files
  std::string filters;                           // as they are written
  std::uint64_t version = 0;                     // a hash of what `says` says
  timestamp_unit int96 = timestamp_unit::nano;   // that INT96 is read in; tables have microseconds
  std::uint64_t mark = 0;

  /// Reads the metadata of all files. Throws errc::format for what is no Parquet, and for a file with other
  /// columns than the table. If they are of none, the columns are those of all files; see `column_union`.
  parquet_files(storage_facts where, session_view session, timestamp_unit int96_unit,
                const table_facts* table);

  [[nodiscard]] std::uint64_t row_of(std::size_t shard, std::uint64_t sample) const noexcept {
    return rows[shard].empty() ? sample : rows[shard][to_size(sample)];
  }
  /// The file without its folder, and the row's number in it: "part-0.parquet:17".
  [[nodiscard]] std::string key_of(std::size_t shard, std::uint64_t row) const {
    const std::string_view name = path(shard);
    return text({name.substr(name.rfind('/') + 1), ":", rows_before[shard] + row});
  }
  [[nodiscard]] std::string describe() const;
  /// The columns that are shown.
  [[nodiscard]] std::vector<source_field> fields() const;

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
  void show(const std::vector<std::string>& names);
  /// Only rows of which a filter is true stay. Reads the filter's column where what files say of row groups
  /// does not decide.
  void keep(const column_filter& filter, session_view session, const parquet_limits& limits);

  /// These leaves of a shard's row group; those that are not wanted are not read, and look like nulls.
  /// Several columns are read at once if there is help.
  [[nodiscard]] std::unique_ptr<arrow_batch> load(session_view session, std::size_t shard,
                                                  std::span<const std::size_t> placed,
                                                  std::span<const std::size_t> wanted,
                                                  const parquet_limits& limits,
                                                  batch_cache::sharing* help = nullptr) const;

 private:
  struct made_of {
    std::vector<manifest::shard> shards;
    std::vector<object_version> versions;
    std::vector<object_id> objects;
    std::vector<int> group;
    std::vector<std::uint64_t> rows_before;
    std::vector<std::vector<std::uint32_t>> rows;

    // `deleted`: the file's rows that are not there any more, ascending.
    void add_groups(const parquet::FileMetaData& metadata, const std::string& name, object_id object,
                    object_version version, std::span<const std::uint64_t> deleted);
  };

  // Fields in lists that the table does not have any more are marked.
  [[nodiscard]] static std::string with_deleted(const arrow_type& type) {
    std::string said = type.text();
    for (std::size_t at = 0; (at = said.find('\0', at)) != said.npos;) said.replace(at, 1, "deleted ");
    return said;
  }
  [[nodiscard]] std::vector<std::vector<int>> columns_of(const parquet_file& file, const arrow_type& own,
                                                         std::span<const std::string> paths) const;
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
                                  std::vector<int>& ids) const;
  [[nodiscard]] parquet::ArrowReaderProperties reads_as() const {
    parquet::ArrowReaderProperties how;
    how.set_coerce_int96_timestamp_unit(static_cast<arrow::TimeUnit::type>(int96));
    return how;
  }
  void take(made_of made);
  static void keep_columns(std::vector<std::vector<int>> ordered, std::size_t i,
                           std::vector<parquet_file>& found);
  /// Throws errc::format for a file of other columns than the table.
  void fit_to_table(const storage_facts& where, const table_facts& table,
                    const std::vector<std::string>& names, const std::vector<arrow_type>& schemas,
                    std::vector<parquet_file>& found);
};

[[nodiscard]] inline arrow_type parquet_schema(const arrow::Schema& given) {
  arrow_abi::held<arrow_abi::schema> exported;
  const arrow::Status done = arrow::ExportSchema(given, reinterpret_cast<ArrowSchema*>(exported.get()));
  if (!done.ok())
    throw error(errc::format, {"Arrow cannot show the columns: ", arrow_message(done.message())});
  return import_arrow_schema(*exported);
}

inline parquet_file parquet_files::open(session_view session, object_id object, arrow_type& root,
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

inline void parquet_files::made_of::add_groups(const parquet::FileMetaData& metadata, const std::string& name,
                                               object_id object, object_version version,
                                               std::span<const std::uint64_t> deleted) {
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
    shards.push_back({name, bytes, left.empty() ? count : left.size(), said(of_group->total_byte_size()),
                      mix64(places + count), version.stamp});
    versions.push_back(version);
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

// Files that have the same columns at the same places share what is known of it.
inline void parquet_files::keep_columns(std::vector<std::vector<int>> ordered, std::size_t i,
                                        std::vector<parquet_file>& found) {
  if (i != 0 && ordered == *found[i - 1].columns)
    found[i].columns = found[i - 1].columns;
  else
    found[i].columns.reset(new std::vector<std::vector<int>>(std::move(ordered)));
}

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

// By leaf of the dataset, also those of folders that are in the file, too.
inline std::vector<std::vector<int>> parquet_files::columns_of(const parquet_file& file,
                                                               const arrow_type& own,
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
    try {
      known[i] = session.version(object);
      std::vector<int> ids;
      found[i] = open(session, object, schemas[i], ids);
      if (table != nullptr) name_as_in_table(*table, schemas[i], ids);
      ends[i] = ends_of(session, object, known[i].size);
      session.confirm(object);
    } catch (error& e) {
      session.confirm(object);
      e.in_file(where.names[i]);
      throw;
    }
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
  made_of made;
  for (std::size_t i = 0; i < count; ++i) {
    try {
      ask_parquet([&] {
        made.add_groups(*found[i].metadata, where.names[i], static_cast<object_id>(i), known[i],
                        table != nullptr && i < table->deleted.size() ? std::span(table->deleted[i])
                                                                      : std::span<const std::uint64_t>());
      });
    } catch (error& e) {
      e.in_file(where.names[i]);
      throw;
    }
  }
  leaves = names;
  for (std::size_t i = 0; i < leaves.size(); ++i) shown.push_back(i);
  all_leaves.reset(new std::vector<std::string>(std::move(names)));
  files.reset(new std::vector<parquet_file>(std::move(found)));
  take(std::move(made));
}

inline void parquet_files::take(made_of made) {
  shards = manifest(std::move(made.shards));
  versions = std::move(made.versions);
  objects = std::move(made.objects);
  group = std::move(made.group);
  rows_before = std::move(made.rows_before);
  rows = std::move(made.rows);
  std::string what = schema->text();
  for (const std::string& name : leaves) append(what, {";", name});
  what += filters;
  std::uint64_t parts = version;
  for (const object_id object : objects) parts = mix64(parts + hive->mark(object));
  mark = hash_words(hash_bytes(mix64(0x706172717565740a), bytes_of(what)),
                    std::array{shards.fingerprint(), parts});
}

inline void parquet_files::show(const std::vector<std::string>& names) {
  std::vector<std::size_t> found;
  for (const std::string& name : names) {
    const std::size_t at = find_arrow_leaf(leaves, name);
    if (at == leaves.size()) {
      std::string there;
      for (const std::string& one : leaves) append(there, {there.empty() ? "" : ", ", one});
      throw error(errc::argument, {"there is no column '", name, "', only ", there});
    }
    found.push_back(shown[at]);
  }
  shown = std::move(found);
  leaves = names;
  take({{shards.shards().begin(), shards.shards().end()}, versions, objects, group, rows_before, rows});
}

inline std::string parquet_files::describe() const {
  std::string line = text(
      {says.empty() ? "parquet" : says, "(", files->size(), files->size() == 1 ? " file, " : " files, ",
       group.size(), group.size() == 1 ? " row group): " : " row groups): ", shards.samples(), " rows of "});
  const std::vector<source_field> all = fields();
  for (std::size_t i = 0; i < all.size(); ++i)
    append(line, {i == 0 ? "" : ", ", all[i].name, " (", all[i].type, ")"});
  return line + filters;
}

inline std::vector<source_field> parquet_files::fields() const {
  std::vector<source_field> made;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const arrow_type& type = type_of(shown[i]);
    made.push_back({leaves[i], shown[i] < stored_leaves() ? type.text() : type.dictionary.front().text()});
  }
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_prune.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// Calls `work.operator()<Type>()` with the type that a column has in a file; returns false for INT96.
template <class Work>
bool with_parquet_type(parquet::Type::type type, Work&& work) {
  switch (type) {
    case parquet::Type::BOOLEAN:
      return work.template operator()<parquet::BooleanType>();
    case parquet::Type::INT32:
      return work.template operator()<parquet::Int32Type>();
    case parquet::Type::INT64:
      return work.template operator()<parquet::Int64Type>();
    case parquet::Type::FLOAT:
      return work.template operator()<parquet::FloatType>();
    case parquet::Type::DOUBLE:
      return work.template operator()<parquet::DoubleType>();
    case parquet::Type::BYTE_ARRAY:
      return work.template operator()<parquet::ByteArrayType>();
    case parquet::Type::FIXED_LEN_BYTE_ARRAY:
      return work.template operator()<parquet::FLBAType>();
    default:
      return false;
  }
}

template <class Type>
[[nodiscard]] column_constant parquet_constant(const typename Type::c_type& value,
                                               const parquet::ColumnDescriptor& column) {
  using c_type = typename Type::c_type;
  const auto text = [](const std::uint8_t* at, std::size_t size) {
    return size == 0 ? std::string_view() : std::string_view(reinterpret_cast<const char*>(at), size);
  };
  if constexpr (std::is_same_v<Type, parquet::ByteArrayType>) {
    return text(value.ptr, value.len);
  } else if constexpr (std::is_same_v<Type, parquet::FLBAType>) {
    return text(value.ptr, static_cast<std::size_t>(column.type_length()));
  } else if constexpr (std::is_integral_v<c_type> && !std::is_same_v<c_type, bool>) {
    if (column.sort_order() == parquet::SortOrder::UNSIGNED) return std::make_unsigned_t<c_type>(value);
    return value;
  } else {
    return value;
  }
}

/// Which rows of a row group a filter may be true of, by what its file says: statistics, the index of its
/// pages and a Bloom filter.
struct parquet_reach {
  bool all = false;                                            // it is true of all rows
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;  // from row to row

  /// Nothing is known: any of the rows.
  [[nodiscard]] static parquet_reach any(std::uint64_t rows) { return {false, {{0, rows}}}; }
  [[nodiscard]] bool none() const noexcept { return parts.empty(); }
  [[nodiscard]] bool may(std::uint64_t row) const noexcept {
    return std::ranges::any_of(parts, [&](const auto& one) { return row >= one.first && row < one.second; });
  }

  /// `column` is the one that the filter is for, of this type. What the file says in vain is ignored; errors
  /// are those of the storage.
  [[nodiscard]] static parquet_reach of(const std::shared_ptr<parquet::FileMetaData>& file, int group,
                                        int column, const arrow_type& type, const bound_filter& filter,
                                        session_view session, object_id object);
};

/// Whether the values that a file has in front of it are what Arrow makes of them, so that its bounds are
/// those of the column: not for values whose unit Arrow changes.
[[nodiscard]] inline bool has_parquet_bounds(const parquet::ColumnDescriptor& column,
                                             const arrow_type& given) {
  const arrow_type* type = &given;
  while (!type->dictionary.empty()) type = &type->dictionary.front();
  const bool is_text = type->layout == arrow_layout::bytes32 || type->layout == arrow_layout::bytes64 ||
                       type->layout == arrow_layout::views || type->format.starts_with("w:");
  const bool has_text = column.physical_type() == parquet::Type::BYTE_ARRAY ||
                        column.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY;
  if (is_text != has_text) return false;
  if (column.max_repetition_level() != 0 || column.sort_order() == parquet::SortOrder::UNKNOWN) return false;
  // Bounds of files that name no order are by signed comparison.
  if (column.column_order().get_order() != parquet::ColumnOrder::TYPE_DEFINED_ORDER &&
      column.sort_order() != parquet::SortOrder::SIGNED)
    return false;
  if (type->format == "b" || type->format == "f" || type->format == "g" || type->format == "tdD") return true;
  if (is_text) return column.sort_order() == parquet::SortOrder::UNSIGNED;
  if (type->format.starts_with("ts") && column.logical_type()->is_timestamp()) {
    const auto unit = static_cast<const parquet::TimestampLogicalType&>(*column.logical_type()).time_unit();
    const char letter = unit == parquet::LogicalType::TimeUnit::MILLIS   ? 'm'
                        : unit == parquet::LogicalType::TimeUnit::MICROS ? 'u'
                                                                         : 'n';
    return type->format[2] == letter;
  }
  // Whole numbers: one letter.
  return type->number != arrow_number::none && type->format.size() == 1 && type->format != "e";
}

/// What a file claims of the values of some rows, as it stands in it: how many are null, negative or none if
/// it does not say so, and the encoded bounds, of which older versions of Arrow do not show the bytes.
struct parquet_claim {
  std::uint64_t rows = 0;
  std::optional<std::int64_t> nulls{};
  bool has_bounds = false;
  std::optional<std::size_t> low_size{}, high_size{};
};

/// Whether so many bytes are a value of this type.
template <class Type>
[[nodiscard]] bool is_parquet_value(std::optional<std::size_t> size,
                                    const parquet::ColumnDescriptor& column) {
  if (!size || std::is_same_v<Type, parquet::ByteArrayType>) return true;
  if constexpr (std::is_same_v<Type, parquet::FLBAType>)
    return *size == static_cast<std::size_t>(column.type_length());
  return *size == sizeof(typename Type::c_type);
}

/// The bounds that a claim proves; none for one that contradicts itself or the schema, or that counts more
/// nulls than rows, or fewer than none: of such a claim nothing is believed. `bound(is_low)` is a bound of
/// type `Type::c_type`.
template <class Type, class Bound>
[[nodiscard]] std::optional<column_bounds> proven_bounds(const parquet_claim& claim,
                                                         const parquet::ColumnDescriptor& column,
                                                         Bound&& bound) {
  column_bounds made;
  made.rows = claim.rows;
  const bool required = column.max_definition_level() == 0;
  if (claim.nulls) {
    if (*claim.nulls < 0 || static_cast<std::uint64_t>(*claim.nulls) > claim.rows) return std::nullopt;
    made.nulls = static_cast<std::uint64_t>(*claim.nulls);
    if (*made.nulls != 0 && (required || (claim.has_bounds && *made.nulls == claim.rows)))
      return std::nullopt;
  }
  if (required) made.nulls = 0;
  if (!claim.has_bounds) return made;
  if (!is_parquet_value<Type>(claim.low_size, column) || !is_parquet_value<Type>(claim.high_size, column))
    return std::nullopt;
  made.low = parquet_constant<Type>(bound(true), column);
  made.high = parquet_constant<Type>(bound(false), column);
  const int order = compare_constants(made.low, made.high);
  if (order == 1) return std::nullopt;
  made.some = order != 2;  // NaN is no bound
  return made;
}

/// The bytes of a row group's bounds, if this version of Arrow shows them.
template <class Chunk>
void add_encoded_bounds(const Chunk& chunk, parquet_claim& claim) {
  if constexpr (requires { chunk.encoded_statistics()->min(); })
    if (const auto encoded = chunk.encoded_statistics()) {
      claim.low_size = encoded->min().size();
      claim.high_size = encoded->max().size();
    }
}

/// What the statistics of a row group prove of a column.
[[nodiscard]] inline std::optional<column_bounds> proven_by_statistics(
    const parquet::ColumnChunkMetaData& chunk, const parquet::ColumnDescriptor& column, std::uint64_t rows) {
  const auto statistics = chunk.statistics();
  parquet_claim claim{.rows = rows};
  // All values of a column that is in no list have a place, nulls too.
  if (statistics == nullptr || chunk.num_values() < 0 ||
      static_cast<std::uint64_t>(chunk.num_values()) != rows)
    return std::nullopt;
  if (statistics->HasNullCount()) claim.nulls = statistics->null_count();
  claim.has_bounds = statistics->HasMinMax();
  add_encoded_bounds(chunk, claim);
  std::optional<column_bounds> made;
  (void)with_parquet_type(column.physical_type(), [&]<class Type>() {
    const auto& typed = static_cast<const parquet::TypedStatistics<Type>&>(*statistics);
    made = proven_bounds<Type>(claim, column, [&](bool is_low) -> typename Type::c_type {
      return is_low ? typed.min() : typed.max();
    });
    return true;
  });
  return made;
}

/// What a file's index of pages proves of one of them. That a page has nothing but nulls is believed only
/// with their number: some writers say so of pages of which they know nothing.
[[nodiscard]] inline std::optional<column_bounds> proven_by_page(const parquet::ColumnIndex& index,
                                                                 std::size_t page,
                                                                 const parquet::ColumnDescriptor& column,
                                                                 std::uint64_t rows) {
  parquet_claim claim{.rows = rows};
  if (index.has_null_counts()) claim.nulls = index.null_counts()[page];
  claim.has_bounds = !index.null_pages()[page];
  if (!claim.has_bounds &&
      (!claim.nulls || *claim.nulls < 0 || static_cast<std::uint64_t>(*claim.nulls) != rows ||
       !index.encoded_min_values()[page].empty() || !index.encoded_max_values()[page].empty()))
    return std::nullopt;
  claim.low_size = index.encoded_min_values()[page].size();
  claim.high_size = index.encoded_max_values()[page].size();
  std::optional<column_bounds> made;
  (void)with_parquet_type(column.physical_type(), [&]<class Type>() {
    const auto& typed = static_cast<const parquet::TypedColumnIndex<Type>&>(index);
    made = proven_bounds<Type>(claim, column, [&](bool is_low) -> typename Type::c_type {
      return (is_low ? typed.min_values() : typed.max_values())[page];
    });
    return true;
  });
  return made;
}

/// The rows of a group that its index of pages does not exclude; none if it says nothing.
[[nodiscard]] inline std::optional<std::vector<std::pair<std::uint64_t, std::uint64_t>>> rows_by_pages(
    const parquet::ColumnIndex& index, const parquet::OffsetIndex& places,
    const parquet::ColumnDescriptor& column, std::uint64_t rows, std::optional<std::uint64_t> nulls,
    const bound_filter& filter) {
  const auto& locations = places.page_locations();
  const std::size_t count = locations.size();
  if (index.null_pages().size() != count || index.encoded_min_values().size() != count ||
      index.encoded_max_values().size() != count ||
      (index.has_null_counts() && index.null_counts().size() != count))
    return std::nullopt;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> kept;
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::uint64_t>(locations[i].first_row_index);
    const std::uint64_t end =
        i + 1 < count ? static_cast<std::uint64_t>(locations[i + 1].first_row_index) : rows;
    if (begin >= end || end > rows || (i == 0 && begin != 0)) return std::nullopt;
    const auto bounds = proven_by_page(index, i, column, end - begin);
    // An index with one page that cannot be right is not to be trusted with the others.
    if (!bounds) return std::nullopt;
    counted += bounds->nulls.value_or(0);
    if (!filter.may_hold(*bounds)) continue;
    if (!kept.empty() && kept.back().second == begin)
      kept.back().second = end;
    else
      kept.emplace_back(begin, end);
  }
  if (index.has_null_counts() && nulls && *nulls != counted) return std::nullopt;
  return kept;
}

template <class Type>
[[nodiscard]] bool in_parquet_filter(const parquet::BloomFilter& filter, const column_constant& value) {
  using c_type = typename Type::c_type;
  if constexpr (std::is_same_v<Type, parquet::ByteArrayType>) {
    const parquet::ByteArray bytes(std::string_view(value.text()));
    return filter.FindHash(filter.Hash(&bytes));
  } else if constexpr (std::is_floating_point_v<c_type>) {
    // 0 and -0 are equal, and have different hashes; NaN has many.
    if (!(value.real() < 0 || value.real() > 0)) return true;
    if (static_cast<double>(static_cast<c_type>(value.real())) < value.real() ||
        static_cast<double>(static_cast<c_type>(value.real())) > value.real())
      return false;
    return filter.FindHash(filter.Hash(static_cast<c_type>(value.real())));
  } else if (value.what() == column_constant::kind::real) {
    return true;
  } else if constexpr (std::is_same_v<c_type, std::int32_t>) {
    const auto whole = static_cast<std::int64_t>(value.bits());
    const bool fits = value.negative() ? whole >= std::numeric_limits<std::int32_t>::min()
                                       : value.bits() <= std::numeric_limits<std::uint32_t>::max();
    return fits && filter.FindHash(filter.Hash(static_cast<std::int32_t>(whole)));
  } else if constexpr (std::is_same_v<c_type, std::int64_t>) {
    return filter.FindHash(filter.Hash(static_cast<std::int64_t>(value.bits())));
  } else {
    return true;
  }
}

inline parquet_reach parquet_reach::of(const std::shared_ptr<parquet::FileMetaData>& file, int group,
                                       int column, const arrow_type& type, const bound_filter& filter,
                                       session_view session, object_id object) {
  const parquet::ColumnDescriptor& descriptor = *file->schema()->Column(column);
  const auto metadata = file->RowGroup(group);
  const auto chunk = metadata->ColumnChunk(column);
  const auto rows = static_cast<std::uint64_t>(metadata->num_rows());
  parquet_reach made = any(rows);
  if (!has_parquet_bounds(descriptor, type)) return made;
  std::optional<std::uint64_t> nulls;
  try {
    if (const auto bounds = proven_by_statistics(*chunk, descriptor, rows)) {
      nulls = bounds->nulls;
      made.all = filter.must_hold(*bounds);
      if (made.all || !filter.may_hold(*bounds)) {
        made.parts.clear();
        return made;
      }
    }
  } catch (const parquet::ParquetException&) {  // statistics that cannot be read say nothing
  }
  const bool has_bloom =
      chunk->bloom_filter_offset().has_value() &&
      std::ranges::any_of(filter.tests, [](const auto& one) { return !one.wanted().empty(); });
  const bool has_pages = chunk->GetColumnIndexLocation() && chunk->GetOffsetIndexLocation();
  if (!has_bloom && !has_pages) return made;
  constexpr std::uint64_t maximum = 1_GiB;
  parquet_memory memory(maximum);
  read_parquet(session, object, memory, maximum, [&](const std::shared_ptr<parquet_input>& input) {
    try {
      const auto reader = parquet::ParquetFileReader::Open(input, parquet::ReaderProperties(&memory), file);
      if (has_bloom) {
        const auto bloom = reader->GetBloomFilterReader().RowGroup(group)->GetColumnBloomFilter(column);
        for (const bound_test& one : filter.tests) {
          if (!bloom || one.wanted().empty()) continue;
          const bool there = std::ranges::any_of(one.wanted(), [&](const column_constant& value) {
            return with_parquet_type(descriptor.physical_type(),
                                     [&]<class Type>() { return in_parquet_filter<Type>(*bloom, value); });
          });
          if (!there) {
            made.parts.clear();
            return arrow::Status::OK();
          }
        }
      }
      const auto pages = has_pages ? reader->GetPageIndexReader() : nullptr;
      const auto indexes = pages ? pages->RowGroup(group) : nullptr;
      const auto values = indexes ? indexes->GetColumnIndex(column) : nullptr;
      const auto places = indexes ? indexes->GetOffsetIndex(column) : nullptr;
      if (values && places)
        if (auto kept = rows_by_pages(*values, *places, descriptor, rows, nulls, filter))
          made.parts = std::move(*kept);
    } catch (const parquet::ParquetException&) {  // an index that cannot be read says nothing
      if (input->failed()) throw;
    }
    return arrow::Status::OK();
  });
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_keep.hpp

namespace penstock::inline v0_1 {
namespace detail {

inline void parquet_files::keep(const column_filter& filter, session_view session,
                                const parquet_limits& limits) {
  const std::size_t leaf = find_leaf(filter.column);
  if (leaf == all_leaves->size()) {
    std::string there;
    for (const std::string& one : *all_leaves) append(there, {there.empty() ? "" : ", ", one});
    throw error(errc::argument, {"there is no column '", filter.column, "' to choose rows by, only ", there});
  }
  check_conflicts(*conflicts, filter.column);
  const bound_filter bound(filter, type_of(leaf));
  const bool in_folders = leaf >= stored_leaves();
  const std::size_t count = group.size();
  struct outcome {
    bool all = false;
    std::vector<std::uint32_t> rows;
  };
  std::vector<outcome> found(count);
  const std::byte zero{};
  const arrow_type nothing = arrow_type::of_format("n");
  arrow_column absent;
  absent.type = &nothing;
  constexpr std::size_t max_in_flight = 8;
  for_each_in_parallel(count, std::min(count, max_in_flight), [&](std::size_t shard) {
    const std::uint64_t samples = shards.shards()[shard].samples;
    outcome& mine = found[shard];
    if (samples == 0) return;
    if (in_folders) {
      // What is in the file, too, must agree.
      const std::vector<std::vector<int>>& stored = *(*files)[object(shard)].columns;
      if (leaf < stored.size() && !stored[leaf].empty())
        (void)load(session, shard, {&leaf, 1}, {&leaf, 1}, limits);
      const arrow_column column = hive->column(object(shard), leaf - stored_leaves(), 1, &zero);
      mine.all = bound.holds(arrow_cell(column, 0));
      return;
    }
    const parquet_file& file = (*files)[object(shard)];
    const std::vector<int>& columns = (*file.columns)[leaf];
    if (columns.empty()) {  // the file does not have the column, which is null there
      mine.all = bound.holds(arrow_cell::null_of(absent));
      return;
    }
    parquet_reach within;
    try {
      within = ask_parquet([&] {
        // Of a value that several columns store, none of them says enough.
        if (columns.size() != 1)
          return parquet_reach::any(
              static_cast<std::uint64_t>(file.metadata->RowGroup(group[shard])->num_rows()));
        return parquet_reach::of(file.metadata, group[shard], columns.front(), type_of(leaf), bound, session,
                                 object(shard));
      });
      mine.all = within.all;
      if (within.all || within.none()) return;
    } catch (error& e) {
      session.confirm(object(shard));
      e.in_file(path(shard));
      throw;
    }
    const auto batch = load(session, shard, {&leaf, 1}, {&leaf, 1}, limits);
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::uint64_t row = row_of(shard, i);
      if (within.may(row) && bound.holds(batch->leaves.front().at(row)))
        mine.rows.push_back(static_cast<std::uint32_t>(row));
    }
    if (mine.rows.size() == samples) {
      mine.all = true;
      mine.rows = {};
    }
  });
  made_of made;
  for (std::size_t shard = 0; shard < count; ++shard) {
    if (!found[shard].all && found[shard].rows.empty()) continue;
    manifest::shard one = shards.shards()[shard];
    if (!found[shard].all) {
      const std::uint64_t before = one.samples;
      one.samples = found[shard].rows.size();
      one.payload = static_cast<std::uint64_t>(
          static_cast<double>(one.payload) * static_cast<double>(one.samples) / static_cast<double>(before));
      std::uint64_t which = one.content;
      for (const std::uint32_t row : found[shard].rows) which = mix64(which ^ row);
      one.content = which;
    }
    made.shards.push_back(std::move(one));
    made.versions.push_back(versions[shard]);
    made.objects.push_back(object(shard));
    made.group.push_back(group[shard]);
    made.rows_before.push_back(rows_before[shard]);
    made.rows.push_back(found[shard].all ? rows[shard] : std::move(found[shard].rows));
  }
  append(filters, {" | ", filter.spelled()});
  take(std::move(made));
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_checks.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// Throws errc::checksum, naming the column and the page, for the first page of these columns whose bytes do
/// not have the checksum that stands in front of them. `reader` compares them. Of other damage it says
/// nothing.
inline void find_changed_page(parquet::ParquetFileReader& reader, int group, std::span<const int> columns) {
  for (const int column : columns) {
    const bool has_dictionary =
        reader.metadata()->RowGroup(group)->ColumnChunk(column)->has_dictionary_page();
    std::size_t passed = 0;
    try {
      const auto pages = reader.RowGroup(group)->GetColumnPageReader(column);
      while (pages->NextPage() != nullptr) ++passed;
    } catch (const std::exception& e) {
      if (std::string_view(e.what()).find("CRC checksum") == std::string_view::npos) continue;
      const std::string page = has_dictionary && passed == 0
                                   ? std::string("the dictionary page")
                                   : text({"data page ", passed - (has_dictionary ? 1 : 0)});
      throw error(errc::checksum,
                  {"row group ", group, ", column '",
                   reader.metadata()->schema()->Column(column)->path()->ToDotString(), "', ", page,
                   ": the bytes do not have the checksum that the file says, so that it is damaged: fetch it "
                   "anew, or read it as it is with parquet_options{.page_checksum_verification = false}"});
    }
  }
}

/// Whether a timestamp of INT96, nanoseconds of a day and the Julian day, has a number in this unit.
[[nodiscard]] inline bool fits_in_unit(const parquet::Int96& value, timestamp_unit unit) noexcept {
  constexpr std::int64_t julian_day_of_1970 = 2440588, seconds = 86400;
  std::int64_t nanoseconds = 0;
  std::memcpy(&nanoseconds, value.value.data(), sizeof(nanoseconds));
  std::int64_t in_second = 1;
  for (auto i = static_cast<int>(unit); i > 0; --i) in_second *= 1000;
  // Arrow divides these as a number without a sign.
  if (nanoseconds < 0 && unit != timestamp_unit::nano) return false;
  const std::int64_t behind = nanoseconds / (1'000'000'000 / in_second);
  std::int64_t all = static_cast<std::int64_t>(value.value[2]) - julian_day_of_1970;
  return !__builtin_mul_overflow(all, seconds * in_second, &all) &&
         !__builtin_add_overflow(all, behind, &all);
}

/// Throws errc::format for a timestamp of INT96 that its unit cannot count: Arrow would give another one. All
/// other units of Parquet are those of Arrow.
inline void check_int96(parquet::ParquetFileReader& reader, int group, std::span<const int> columns,
                        timestamp_unit unit) {
  for (const int column : columns) {
    const parquet::ColumnDescriptor& its = *reader.metadata()->schema()->Column(column);
    if (its.physical_type() != parquet::Type::INT96) continue;
    const auto values =
        std::static_pointer_cast<parquet::Int96Reader>(reader.RowGroup(group)->Column(column));
    constexpr std::size_t maximum = 1024;
    std::array<parquet::Int96, maximum> some;
    std::array<std::int16_t, maximum> definitions, repetitions;
    while (values->HasNext()) {
      std::int64_t found = 0;
      const auto passed =
          values->ReadBatch(maximum, definitions.data(), repetitions.data(), some.data(), &found);
      for (std::size_t i = 0; i < static_cast<std::size_t>(found); ++i) {
        if (fits_in_unit(some[i], unit)) continue;
        constexpr std::array<std::string_view, 4> names{"seconds", "milliseconds", "microseconds",
                                                        "nanoseconds"};
        throw error(errc::format,
                    {"the column '", its.path()->ToDotString(), "' has a timestamp of INT96 that ",
                     names[static_cast<std::size_t>(unit)], " in 64 bits cannot count",
                     unit == timestamp_unit::nano
                         ? ", which end in 2262: read it with "
                           "parquet_options{.coerce_int96_timestamp_unit = timestamp_unit::micro}"
                         : ": the file is damaged"});
      }
      if (passed == 0 && found == 0) break;
    }
  }
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_widen.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// The type of a single value that a table has as `table`; the one that the file has if they are read alike.
/// `inside` a list or a map, whose values may be read in place, they must be the same.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> widened_value(
    const std::shared_ptr<arrow::DataType>& file, const arrow_type& table, bool inside) {
  const std::string_view format = table.format;
  const bool is_whole = arrow::is_integer(file->id());
  if (const auto digits = digits_of_decimal(table)) {
    const bool is_decimal = arrow::is_decimal(file->id());
    if (is_decimal) {
      const auto& its = static_cast<const arrow::DecimalType&>(*file);
      if (its.scale() == digits->behind && static_cast<std::uint64_t>(its.byte_width()) == table.width)
        return file;
    }
    if (!is_decimal && !is_whole) return file;
    constexpr int max_digits = 38;  // of 128 bits
    return digits->all > max_digits ? arrow::decimal256(digits->all, digits->behind)
                                    : arrow::decimal128(digits->all, digits->behind);
  }
  if (format == "g" && (is_whole || (inside && file->id() == arrow::Type::FLOAT))) return arrow::float64();
  if (format.starts_with("ts") && file->id() == arrow::Type::DATE32)
    return arrow::timestamp(format[2] == 's'   ? arrow::TimeUnit::SECOND
                            : format[2] == 'm' ? arrow::TimeUnit::MILLI
                            : format[2] == 'u' ? arrow::TimeUnit::MICRO
                                               : arrow::TimeUnit::NANO);
  if (is_whole && inside) {
    const std::size_t bytes = static_cast<std::size_t>(file->bit_width()) / 8;
    const std::pair<std::string_view, std::shared_ptr<arrow::DataType>> wider[] = {
        {"s", arrow::int16()},  {"i", arrow::int32()},  {"l", arrow::int64()},
        {"S", arrow::uint16()}, {"I", arrow::uint32()}, {"L", arrow::uint64()}};
    for (const auto& [letter, type] : wider)
      if (format == letter && bytes < table.width) return type;
  }
  return file;
}

/// The type of a value, which may be a list or a map.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> widened_type(
    const std::shared_ptr<arrow::DataType>& file, const arrow_type& table, bool inside) {
  if (file->num_fields() == 0) return widened_value(file, table, inside);
  const arrow_type* of = &table;
  const bool is_map = file->id() == arrow::Type::MAP;
  const arrow::DataType* holder = file.get();
  if (is_map) {
    if (table.children.size() != 1) return file;
    of = &table.children.front();
    holder = file->field(0)->type().get();
  }
  if (static_cast<std::size_t>(holder->num_fields()) != of->children.size()) return file;
  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool changed = false;
  for (int i = 0; i < holder->num_fields(); ++i) {
    const std::shared_ptr<arrow::Field>& one = holder->field(i);
    auto made = widened_type(one->type(), of->children[static_cast<std::size_t>(i)], true);
    changed = changed || made != one->type();
    fields.push_back(one->WithType(std::move(made)));
  }
  if (!changed) return file;
  switch (file->id()) {
    case arrow::Type::LIST:
      return arrow::list(fields.front());
    case arrow::Type::LARGE_LIST:
      return arrow::large_list(fields.front());
    case arrow::Type::FIXED_SIZE_LIST:
      return arrow::fixed_size_list(fields.front(),
                                    static_cast<const arrow::FixedSizeListType&>(*file).list_size());
    case arrow::Type::STRUCT:
      return arrow::struct_(fields);
    case arrow::Type::MAP:
      return std::make_shared<arrow::MapType>(fields[0], fields[1],
                                              static_cast<const arrow::MapType&>(*file).keys_sorted());
    default:
      return file;
  }
}

/// The same for a column and the types of its leaves: a struct has one for each of its fields, in order.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> widened_column(
    const std::shared_ptr<arrow::DataType>& file, std::span<const arrow_type* const>& table) {
  if (file->id() == arrow::Type::EXTENSION) {
    (void)widened_column(static_cast<const arrow::ExtensionType&>(*file).storage_type(), table);
    return file;
  }
  if (file->id() != arrow::Type::STRUCT) {
    if (table.empty()) return file;
    const arrow_type& next = *table.front();
    table = table.subspan(1);
    return widened_type(file, next, false);
  }
  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool changed = false;
  for (const std::shared_ptr<arrow::Field>& one : file->fields()) {
    auto made = widened_column(one->type(), table);
    changed = changed || made != one->type();
    fields.push_back(one->WithType(std::move(made)));
  }
  return changed ? arrow::struct_(fields) : file;
}

/// Columns with the types that they have in a table, `types` by leaf. What the table has widened is
/// converted; a value that has no place in the new type is an error.
[[nodiscard]] inline arrow::Result<std::shared_ptr<arrow::RecordBatch>> as_in_table(
    const arrow::RecordBatch& rows, std::span<const arrow_type* const> types, arrow::MemoryPool* pool) {
  arrow::compute::ExecContext context(pool);
  context.set_use_threads(false);
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> columns;
  for (int i = 0; i < rows.num_columns(); ++i) {
    columns.push_back(rows.column(i));
    auto type = widened_column(columns.back()->type(), types);
    if (type != columns.back()->type()) {
      ARROW_ASSIGN_OR_RAISE(
          columns.back(),
          arrow::compute::Cast(*columns.back(), type, arrow::compute::CastOptions::Safe(), &context));
    }
    fields.push_back(rows.schema()->field(i)->WithType(std::move(type)));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), rows.num_rows(), std::move(columns));
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_load.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// Some columns of a row group, read together.
struct parquet_piece {
  std::vector<std::size_t> leaves;  // in the file's order, in which Arrow returns them
  imported_schema schema;
  shared<const imported_batch> batch;
};

/// What a batch of a row group lies in.
struct parquet_group {
  parquet_memory pool;
  std::vector<parquet_piece> pieces;
  arrow_type nothing = arrow_type::of_format("n");
  arrow_column unread;

  explicit parquet_group(std::uint64_t limit) : pool(limit) {}

  [[nodiscard]] const arrow_leaf* find(std::size_t leaf) const noexcept {
    for (const parquet_piece& piece : pieces)
      for (std::size_t i = 0; i < piece.leaves.size(); ++i)
        if (piece.leaves[i] == leaf) return &piece.batch->leaves[i];
    return nullptr;
  }
};

template <class Reader>
[[nodiscard]] arrow::Status read_parquet_group(Reader& reader, int group, const std::vector<int>& columns,
                                               std::shared_ptr<arrow::Table>& into) {
  if constexpr (requires { reader.ReadRowGroup(group, columns).status(); }) {
    ARROW_ASSIGN_OR_RAISE(into, reader.ReadRowGroup(group, columns));
    return arrow::Status::OK();
  } else {  // before Arrow 24
    return reader.ReadRowGroup(group, columns, &into);
  }
}

/// Whether arrays of a type hold up to 2 GiB of bytes, so that Arrow makes several of more.
[[nodiscard]] inline bool is_short_binary(arrow::Type::type type) noexcept {
  return type == arrow::Type::STRING || type == arrow::Type::BINARY;
}

/// Arrays whose lengths have 64 bits, which Arrow has from version 21 on.
template <class Properties>
[[nodiscard]] Properties with_large_lengths(Properties how) {
  if constexpr (requires { how.set_binary_type(arrow::Type::LARGE_BINARY); }) {
    how.set_binary_type(arrow::Type::LARGE_BINARY);
    how.set_list_type(arrow::Type::LARGE_LIST);
  }
  return how;
}

/// Whether an array may need lengths of 64 bits, for more than 2 GiB of bytes or 2^31 values of lists.
enum class parquet_lengths : std::uint8_t { small, unknown, large };
[[nodiscard]] inline parquet_lengths lengths_of(const parquet::FileMetaData& file, int group,
                                                std::span<const int> columns) {
  parquet_lengths found = parquet_lengths::small;
  for (const int column : columns) {
    const parquet::ColumnDescriptor& its = *file.schema()->Column(column);
    if (its.physical_type() != parquet::Type::BYTE_ARRAY && its.max_repetition_level() == 0) continue;
    // Values that are repeated take no room in a file.
    found = parquet_lengths::unknown;
    if (file.RowGroup(group)->ColumnChunk(column)->total_uncompressed_size() >
        std::numeric_limits<std::int32_t>::max())
      return parquet_lengths::large;
  }
  return found;
}

/// How the columns of a row group are read.
struct parquet_way {
  parquet::ArrowReaderProperties properties;
  timestamp_unit int96;
  parquet_limits limits;
};

/// Reads the columns of a piece.
inline void read_parquet_piece(session_view session, object_id object, const parquet_file& file, int group,
                               std::uint64_t rows, const parquet_way& way,
                               std::span<const arrow_type* const> table, parquet_memory& pool,
                               parquet_piece& piece) {
  std::vector<int> columns;
  std::vector<const arrow_type*> types;  // that the table has, if the file has others
  for (const std::size_t leaf : piece.leaves) {
    columns.insert(columns.end(), (*file.columns)[leaf].begin(), (*file.columns)[leaf].end());
    if (file.converts) types.push_back(table[leaf]);
  }
  read_parquet(session, object, pool, way.limits.group, [&](const std::shared_ptr<parquet_input>& input) {
    const auto read_with = [&](parquet::ArrowReaderProperties how) {
      parquet::arrow::FileReaderBuilder builder;
      ARROW_RETURN_NOT_OK(builder.Open(input, parquet_pages(&pool, way.limits.checksums), file.metadata));
      // Arrow's threads may still use the memory pool when a read has failed and is over.
      how.set_use_threads(false);
      // Ranges close to each other are read as one, all at once; in place there is nothing to gain.
      how.set_pre_buffer(!session.views());
      std::unique_ptr<parquet::arrow::FileReader> reader;
      builder.memory_pool(&pool)->properties(how);
      ARROW_RETURN_NOT_OK(builder.Build(&reader));
      std::shared_ptr<arrow::Table> read;
      const arrow::Status done = read_parquet_group(*reader, group, columns, read);
      if (!done.ok()) {
        if (way.limits.checksums && !pool.refused() && !input->failed())
          find_changed_page(*reader->parquet_reader(), group, columns);
        return done;
      }
      for (const auto& column : read->columns())
        if (column->num_chunks() > 1 && is_short_binary(column->type()->id()))
          return arrow::Status::Invalid(
              "a column of the row group has more than 2 GiB of bytes, which needs a newer version of Arrow, "
              "or "
              "smaller row groups");
      check_int96(*reader->parquet_reader(), group, columns, way.int96);
      if (static_cast<std::uint64_t>(read->num_rows()) != rows)
        return arrow::Status::Invalid("the columns have ", read->num_rows(), " rows and not ", rows);
      std::shared_ptr<arrow::RecordBatch> rows_read;
      ARROW_ASSIGN_OR_RAISE(rows_read, read->CombineChunksToBatch(&pool));
      if (file.converts) {
        ARROW_ASSIGN_OR_RAISE(rows_read, as_in_table(*rows_read, types, &pool));
      }
      piece.schema.root = parquet_schema(*rows_read->schema());
      piece.schema.leaves = arrow_leaf_names(piece.schema.root);
      arrow_abi::held<arrow_abi::array> exported;
      ARROW_RETURN_NOT_OK(
          arrow::ExportRecordBatch(*rows_read, reinterpret_cast<ArrowArray*>(exported.get())));
      piece.batch = import_arrow_batch(std::move(exported), piece.schema);
      return arrow::Status::OK();
    };
    const parquet_lengths lengths = lengths_of(*file.metadata, group, columns);
    if (lengths != parquet_lengths::large) {
      const arrow::Status done = read_with(way.properties);
      if (done.ok() || lengths == parquet_lengths::small || pool.refused() || input->failed()) return done;
    }
    return read_with(with_large_lengths(way.properties));
  });
  if (piece.schema.leaves.size() != piece.leaves.size())
    throw error(errc::format,
                {"Arrow returns ", piece.schema.leaves.size(), " columns of ", piece.leaves.size()});
}

/// Distributes leaves among up to eight pieces, which are about the same to read.
[[nodiscard]] inline std::vector<parquet_piece> parquet_pieces(const std::vector<std::size_t>& leaves,
                                                               const parquet_file& file, int group) {
  constexpr std::size_t maximum = 8;
  const auto metadata = file.metadata->RowGroup(group);
  std::vector<std::int64_t> ends;  // of the leaves, in bytes
  std::int64_t all = 0;
  for (const std::size_t leaf : leaves) {
    for (const int column : (*file.columns)[leaf])
      all += std::max<std::int64_t>(metadata->ColumnChunk(column)->total_uncompressed_size(), 1);
    ends.push_back(all);
  }
  const std::size_t count = std::min(leaves.size(), maximum);
  std::vector<parquet_piece> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.emplace_back();
    const auto share = static_cast<double>(all) * static_cast<double>(i + 1) / static_cast<double>(count);
    const std::size_t left = count - i - 1;  // each piece has a leaf
    do pieces.back().leaves.push_back(leaves[at++]);
    while (at < leaves.size() - left && (left == 0 || static_cast<double>(ends[at]) <= share));
  }
  return pieces;
}

inline std::unique_ptr<arrow_batch> parquet_files::load(session_view session, std::size_t shard,
                                                        std::span<const std::size_t> placed,
                                                        std::span<const std::size_t> wanted,
                                                        const parquet_limits& limits,
                                                        batch_cache::sharing* help) const {
  const object_id object = this->object(shard);
  const parquet_file& file = (*files)[object];
  auto made = std::make_unique<arrow_batch>();
  const shared<parquet_group> memory(new parquet_group(limits.group));
  try {
    compare_version(session, shard);
    std::vector<std::size_t> read;
    for (const std::size_t leaf : wanted)
      if (leaf < file.columns->size() && !(*file.columns)[leaf].empty()) read.push_back(leaf);
    std::ranges::sort(read, {}, [&](std::size_t leaf) { return (*file.columns)[leaf].front(); });
    read.erase(std::unique(read.begin(), read.end()), read.end());
    const auto rows_of_group = ask_parquet([&] {
      memory->pieces = parquet_pieces(read, file, group[shard]);
      return static_cast<std::uint64_t>(file.metadata->RowGroup(group[shard])->num_rows());
    });
    std::vector<const arrow_type*> types;
    if (file.converts || file.widens) types = arrow_leaf_types(*schema);
    const parquet_way way{reads_as(), int96, limits};
    auto read_one = [&](std::size_t i) {
      read_parquet_piece(session, object, file, group[shard], rows_of_group, way, types, memory->pool,
                         memory->pieces[i]);
    };
    shared_loop loop(memory->pieces.size(), read_one);
    if (help != nullptr && memory->pieces.size() > 1) {
      help->run(loop);
    } else {
      loop.help();
      loop.end();
    }
    memory->unread.type = &memory->nothing;
    memory->unread.length = rows_of_group;
    if (std::ranges::any_of(wanted, [&](std::size_t leaf) { return leaf >= stored_leaves(); })) {
      buffer numbers(to_size(rows_of_group));
      std::ranges::fill(numbers.span(), std::byte{});
      made->owned.push_back(std::move(numbers));
    }
    made->root.length = rows_of_group;
    made->root.children.reserve(placed.size());
    for (const std::size_t leaf : placed) {
      const arrow_leaf* const found = memory->find(leaf);
      if (found != nullptr && leaf < stored_leaves()) {
        made->leaves.push_back(*found);
        if (file.widens) widen_leaf(*made, made->leaves.back(), *types[leaf]);
      } else if (std::ranges::find(wanted, leaf) == wanted.end()) {
        made->leaves.push_back({&memory->unread, 0, {}});
      } else if (leaf < stored_leaves()) {
        made->leaves.push_back(lacking_leaf(*made, (*all_leaves)[leaf], rows_of_group));
      } else {
        const std::size_t part = leaf - stored_leaves();
        if (found != nullptr) hive->check_equal(object, part, *found, rows_of_group);
        made->root.children.push_back(hive->column(object, part, rows_of_group, made->owned.front().data()));
        made->leaves.push_back({&made->root.children.back(), 0, {}});
      }
    }
    session.confirm(object);
  } catch (error& e) {
    session.confirm(object);
    e.in_file(path(shard));
    throw;
  }
  made->kept_bytes = static_cast<std::uint64_t>(memory->pool.bytes_allocated());
  made->kept = memory;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/parquet.hpp

namespace penstock::inline v0_1 {

/// Options of `parquet`.
struct parquet_options {
  /// The bytes of decoded row groups that a run keeps in memory, all workers together. The one in use counts,
  /// and is always kept.
  std::uint64_t keep = 1_GiB;
  /// The maximum bytes that reading one row group may take: up to twice those of its values.
  std::uint64_t limit = 8_GiB;
  /// Whether the bytes of pages are compared with the checksums that stand in front of them, where a file has
  /// some.
  bool page_checksum_verification = true;
  /// The unit that INT96 is read in; tables have microseconds. A timestamp that it cannot count, such as
  /// nanoseconds of 2263, is an error.
  timestamp_unit coerce_int96_timestamp_unit = timestamp_unit::nano;
};

namespace detail {

/// The row groups of a run that are in memory.
class parquet_groups {
 public:
  static constexpr bool in_place = false;

  template <class Known>
  parquet_groups(const shared<const Known>& files, const projection& used, parquet_limits limits)
      : files_(files),
        limits_(limits),
        kept_(std::make_unique<batch_cache>(files->group.size(), limits.keep)),
        compared_(files->files->size()) {
    check_conflicts(*files->conflicts, files->leaves, used);
    for (std::size_t i = 0; i < files->leaves.size(); ++i)
      if (used.uses(files->leaves[i])) wanted_.push_back(files->shown[i]);
  }

  [[nodiscard]] const arrow_batch& get(session_view session, std::size_t shard,
                                       shared<const arrow_batch>& held) const {
    held = kept_->get(shard, [&](std::size_t which, batch_cache::sharing& help) {
      std::atomic<bool>& compared = compared_[files_->object(which)];
      if (!compared.load(std::memory_order_relaxed)) {
        files_->compare(session, which);
        compared.store(true, std::memory_order_relaxed);
      }
      return static_cast<const arrow_batch*>(
          files_->load(session, which, files_->shown, wanted_, limits_, &help).release());
    });
    return *held;
  }
  [[nodiscard]] static const arrow_batch* find(std::size_t) noexcept { return nullptr; }
  [[nodiscard]] shared<const arrow_batch> find_kept(std::size_t shard) const noexcept {
    return kept_->find(shard);
  }

 private:
  shared<const parquet_files> files_;
  parquet_limits limits_;
  std::vector<std::size_t> wanted_;  // the leaves that are read
  std::unique_ptr<batch_cache> kept_;
  fixed_array<std::atomic<bool>> compared_;  // by object
};

}  // namespace detail

/// The source that `parquet` makes of Parquet files.
template <storage Storage>
class parquet_source : public opens_as_plan<parquet_source<Storage>> {
  using files = detail::stored_in<detail::parquet_files, Storage>;

 public:
  using penstock_part = source_tag;
  using element = detail::arrow_row<detail::parquet_files>;
  static constexpr std::string_view source_name = "parquet";
  using reader = detail::arrow_rows<Storage, detail::parquet_files, files, detail::parquet_groups>;

  parquet_source(Storage where, parquet_options options)
      : parquet_source(std::move(where), options, nullptr) {}
  /// For sources of tables: what the table says of the storage's objects.
  parquet_source(Storage where, parquet_options options, const detail::table_facts* table)
      : options_(options) {
    auto session = where.connect();
    detail::parquet_files found(facts_of(where), session, options.coerce_int96_timestamp_unit, table);
    table_.reset(new const files(std::move(where), std::move(found)));
  }

  /// The rows of all files, or those that filters left.
  [[nodiscard]] std::uint64_t size() const noexcept { return table_->shards.samples(); }
  /// Where row groups begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept {
    return table_->shards.starts();
  }
  /// The row groups, as shards.
  [[nodiscard]] const penstock::manifest& manifest() const noexcept { return table_->shards; }
  /// Covers the columns that are shown, the filters, and each row group's file, place, size and rows.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return table_->mark; }
  [[nodiscard]] std::string describe() const { return table_->describe(); }
  [[nodiscard]] std::vector<source_field> fields() const { return table_->fields(); }
  /// The types of the files' columns, as the children of a struct.
  [[nodiscard]] const arrow_type& schema() const noexcept { return *table_->schema; }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(table_, used, limits()); }

  /// Only the rows that pass a filter; see `where`.
  [[nodiscard]] friend parquet_source operator|(parquet_source source, column_filter filter) {
    auto session = source.table_->where.connect();
    files changed(*source.table_);
    changed.keep(filter, session, source.limits());
    source.table_.reset(new const files(std::move(changed)));
    return source;
  }
  /// Only these columns; see `columns`.
  [[nodiscard]] friend parquet_source operator|(parquet_source source, column_list names) {
    files changed(*source.table_);
    changed.show(names.names);
    source.table_.reset(new const files(std::move(changed)));
    return source;
  }

 private:
  [[nodiscard]] detail::parquet_limits limits() const noexcept {
    return {options_.keep, options_.limit, options_.page_checksum_verification};
  }

  shared<const files> table_;
  parquet_options options_;
};

/// Parquet files, as Spark, pandas, Polars, DuckDB, Petastorm and Hugging Face's hub have them.
///
///     auto rows = penstock::parquet("imagenet/data/train-*.parquet") | columns<"image.bytes", "label"> |
///                 where<"label">(one_of({3, 5})) | shuffle(seed(7)) |
///                 decode<field<"image.bytes", jpeg>, field<"label", arrow_value<std::int64_t>>>;
///
/// In: a pattern of paths (with `::` between patterns), which is `mapped_file`; a folder, whose files called
/// `*.parquet` are taken in the order of their paths, with those of folders in it, but not what begins with
/// `_` or `.`; or any storage, whose objects are the files. Of a folder or storage with several splits
/// `parquet(folder, split("train"))` reads one; see `split`. The columns are those of all files, in any
/// order: one that a file lacks, or has with the type null, is null there; texts may have any encoding;
/// numbers widen to the smallest type that holds all values exactly, times to the finer unit. Folders called
/// `column=value` are columns: whole numbers of 64 bits if all values are some, otherwise texts; one that is
/// in the files, too, has the files' type.
/// Out: an open sample with a member for each column, as of `arrow_ipc`: the fields of a struct are members
/// of their own ("image.bytes"), `arrow_value<T>` reads numbers, texts, lists and nulls, `arrow_array<T>`
/// lists that are arrays, and any other codec bytes and texts: `jpeg`, `npy`, `json`. Types are those that
/// Arrow gives: decimals are their bytes, times the whole numbers that they count, INT96 is nanoseconds
/// unless `parquet_options::coerce_int96_timestamp_unit` says otherwise. A column called "a.b" beside a
/// struct a with a field b is "`a.b`".
/// What no stage names is not read, nor is it by `columns`. `where` chooses rows when the plan is made,
/// exactly, and reads its column only where the file's statistics, its index of pages and its Bloom filters
/// do not decide.
/// Kind: a source; indexed, deterministic, resumable, elastic, lockstep. `starts` are those of the row
/// groups, so that `shuffle` with a window reads each one once.
/// Making the plan reads the metadata of all files, 16 at once. A plan with `where` keeps four bytes per row
/// of groups that stay in part.
/// Cost per sample: a row group is read and decoded once, by Arrow, its named columns alone, and shared by
/// all workers; row groups are kept up to `parquet_options::keep` bytes, and those of the 64 rows that come
/// next.
/// A row is not copied. No allocation per sample in the steady state.
/// Errors: errc::format, with the file, for what is no Parquet or damaged; with both files and types, when a
/// run opens or `where` is applied, for a column that is used and whose types have no common one; with both
/// values, for a row whose column is not what its folder's name says; for INT96 that its unit cannot count;
/// errc::checksum, with the file, the column and the page, for bytes that do not have their checksum, unless
/// `parquet_options::page_checksum_verification` is false; errc::limit for a row group that takes more than
/// `parquet_options::limit`; errc::argument for `where` and `columns` with a column that is not there or a
/// name that two columns have, for a folder or storage of several splits, and for one that is a table of
/// Delta Lake, Iceberg or Hudi, whose files may hold rows that were deleted, with what to write;
/// errc::missing for a folder without files or without the split; errc::io.
/// Encrypted files are not read.
/// Threads: any number may evaluate, each with its own worker.
/// Write `penstock::parquet`, since Arrow C++ has a namespace of that name.
/// Source: Apache Parquet, "File format"; Arrow C++, `parquet::arrow`.
template <storage Storage>
[[nodiscard]] parquet_source<Storage> parquet(Storage where, parquet_options options = {}) {
  return {detail::one_split(std::move(where), "parquet"), options};
}
template <storage Storage>
[[nodiscard]] parquet_source<Storage> parquet(Storage where, const named_split& which,
                                              parquet_options options = {}) {
  return {detail::one_split(std::move(where), which, "parquet"), options};
}
template <detail::pattern_text Text>
[[nodiscard]] parquet_source<mapped_file> parquet(const Text& pattern, parquet_options options = {}) {
  return {mapped_file(detail::parquet_paths(detail::to_pattern(pattern))), options};
}
template <detail::pattern_text Text>
[[nodiscard]] parquet_source<mapped_file> parquet(const Text& pattern, const named_split& which,
                                                  parquet_options options = {}) {
  return {mapped_file(detail::parquet_paths(detail::to_pattern(pattern), &which)), options};
}
/// From a list of paths, in which braces are not expanded.
[[nodiscard]] inline parquet_source<mapped_file> parquet(std::vector<std::string> paths,
                                                         parquet_options options = {}) {
  return {mapped_file(std::move(paths)), options};
}

/// Parquet files for `dataset`, recognised by the mark at both ends, also in folders that are columns
/// ("year=2024").
struct parquet_format {
  static constexpr std::string_view name = "parquet";
  using sources = std::variant<parquet_source<mapped_file>>;
  template <storage Storage>
  using stored_sources = std::variant<parquet_source<Storage>>;

  parquet_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    if (there.is_table()) return format_fit::none;  // which of its files are rows, only the table knows
    if (there.fit_of(&is_parquet) != format_fit::none) return format_fit::content;
    for (const std::string& folder : there.folders())
      if (folder.find('=') != std::string::npos) return look(there.below(folder));
    return format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const {
    const auto named = [](const listed_files& some) { return some.ending == ".parquet" && is_parquet(some); };
    const bool by_folder = there.is_folder() && (there.fit_of(&is_parquet) == format_fit::none ||
                                                 there.fit_of(named) != format_fit::none);
    if (by_folder) return parquet(there.path(), options);
    std::vector<std::string> paths = there.paths_of(&is_parquet);
    if (there.is_folder()) detail::refuse_table_folder(there.path(), name);
    return parquet(std::move(paths), options);
  }
  template <storage Storage>
  [[nodiscard]] stored_sources<Storage> open_in(Storage where, const dataset_listing&) const {
    return parquet(std::move(where), options);
  }

 private:
  [[nodiscard]] static bool is_parquet(const listed_files& some) {
    return some.begins("PAR1") && some.tail.ends_with("PAR1");
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/delta_log.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// A value of a checkpoint as a commit would have it: structs, maps of texts, lists, texts, numbers, truth
/// values.
[[nodiscard]] inline nlohmann::json delta_value(const arrow::Array& array, std::int64_t row) {
  using nlohmann::json;
  if (array.IsNull(row)) return nullptr;
  switch (array.type_id()) {
    case arrow::Type::STRING:
      return std::string(static_cast<const arrow::StringArray&>(array).GetView(row));
    case arrow::Type::LARGE_STRING:
      return std::string(static_cast<const arrow::LargeStringArray&>(array).GetView(row));
    case arrow::Type::INT32:
      return static_cast<const arrow::Int32Array&>(array).Value(row);
    case arrow::Type::INT64:
      return static_cast<const arrow::Int64Array&>(array).Value(row);
    case arrow::Type::BOOL:
      return static_cast<const arrow::BooleanArray&>(array).Value(row);
    case arrow::Type::STRUCT: {
      json made = json::object();
      const auto& record = static_cast<const arrow::StructArray&>(array);
      for (int i = 0; i < record.num_fields(); ++i)
        made[record.type()->field(i)->name()] = delta_value(*record.field(i), row);
      return made;
    }
    case arrow::Type::MAP: {
      json made = json::object();
      const auto& map = static_cast<const arrow::MapArray&>(array);
      for (std::int64_t i = map.value_offset(row); i < map.value_offset(row + 1); ++i)
        made[delta_value(*map.keys(), i).get<std::string>()] = delta_value(*map.items(), i);
      return made;
    }
    case arrow::Type::LIST: {
      json made = json::array();
      const auto& list = static_cast<const arrow::ListArray&>(array);
      for (std::int64_t i = list.value_offset(row); i < list.value_offset(row + 1); ++i)
        made.push_back(delta_value(*list.values(), i));
      return made;
    }
    default:
      return nullptr;  // statistics, and what is not read
  }
}

/// The files of the log in a table's folder.
[[nodiscard]] inline std::vector<std::string> delta_log_files(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> made;
  std::filesystem::directory_iterator at(folder + "/_delta_log", failed);
  for (const std::filesystem::directory_iterator end; !failed && at != end; at.increment(failed))
    made.push_back(at->path().string());
  if (failed) made.clear();
  return made;
}

/// The folder of the table whose log has these files: of each, what is in front of "_delta_log/". Throws
/// errc::argument for files of two tables.
[[nodiscard]] inline std::string delta_folder(std::span<const std::string> names) {
  constexpr std::string_view log = "_delta_log/";
  std::optional<std::string> made;
  for (const std::string& name : names) {
    const std::size_t at = name.rfind(log);
    if (at == name.npos || (at != 0 && name[at - 1] != '/')) continue;
    std::string folder = name.substr(0, at == 0 ? 0 : at - 1);
    if (!made)
      made = std::move(folder);
    else if (*made != folder)
      throw error(errc::argument,
                  {"the storage has the logs of two tables, '", *made, "' and '", folder, "': name one"});
  }
  return made.value_or(names.empty() ? "the storage" : std::string(names.front()));
}

/// The log of a table.
class delta_log {
 public:
  /// `names`: of the files in the log; what else is among them is left out.
  delta_log(std::string folder, std::span<const std::string> names, table_objects objects)
      : folder_(std::move(folder)), objects_(std::move(objects)) {
    list(names);
  }

  /// What the table says of itself at a version, or at a time; the newest if both are none.
  [[nodiscard]] delta_state read(std::optional<std::uint64_t> version,
                                 std::optional<std::int64_t> timestamp) const {
    if (version && timestamp)
      throw error(errc::argument, "delta_options has a version or a timestamp, not both").in_file(folder_);
    if (timestamp) version = version_at(*timestamp);
    const std::uint64_t wanted = version ? *version : newest();
    std::uint64_t next = 0;
    delta_state state;
    for (const auto& [at, files] : checkpoints_)
      if (at <= wanted && files.complete()) next = at + 1;
    if (next != 0) read_checkpoint(state, checkpoints_.at(next - 1));
    std::vector<std::string> commits;
    for (; next <= wanted; ++next) {
      const auto found = commits_.find(next);
      if (found == commits_.end()) no_version(wanted);
      commits.push_back(found->second);
    }
    read_lines(commits, [&](std::size_t, const nlohmann::json& action) {
      state.apply(action);
      return true;
    });
    state.version = wanted;
    state.finish(folder_);
    return state;
  }

 private:
  struct checkpoint {
    std::map<std::size_t, std::vector<std::string>> written;  // by how many parts there should be
    /// The parts of one that is complete; none if none is.
    [[nodiscard]] std::span<const std::string> parts() const noexcept {
      for (const auto& [count, found] : written) {
        if (count == 1) return std::span(found).first(1);  // several have names of their own, and are alike
        if (count != 0 && count == found.size()) return found;
      }
      return {};
    }
    [[nodiscard]] bool complete() const noexcept { return !parts().empty(); }
  };

  void list(std::span<const std::string> names) {
    const std::string log = name_in_folder(folder_, "_delta_log/");
    for (const std::string& path : names) {
      if (!path.starts_with(log)) continue;
      const std::string_view name = std::string_view(path).substr(log.size());
      constexpr std::size_t digits = 20;
      std::uint64_t version = 0;
      const char* const behind = name.data() + std::min(digits, name.size());
      const auto [end_of_version, wrong] = std::from_chars(name.data(), behind, version);
      if (name.size() <= digits || name[digits] != '.' || end_of_version != behind || wrong != std::errc{})
        continue;
      const std::string_view rest = name.substr(digits + 1);
      if (rest == "json") {
        commits_[version] = path;
      } else if (rest.starts_with("checkpoint.") && (rest.ends_with(".parquet") || rest.ends_with(".json"))) {
        // In one file, in several that say how many they are, or under a name of its own.
        const auto dots = std::ranges::count(rest, '.');
        std::size_t count = 1;
        if (dots == 3)
          std::from_chars(rest.data() + rest.find('.', rest.find('.') + 1) + 1, rest.data() + rest.size(),
                          count);
        checkpoints_[version].written[count].push_back(path);
      }
    }
    if (commits_.empty() && checkpoints_.empty())
      throw error(errc::missing, "this is no table of Delta Lake: there is no log in its folder _delta_log")
          .in_file(folder_);
    for (auto& [version, one] : checkpoints_)
      for (auto& [count, parts] : one.written) std::ranges::sort(parts);
  }
  [[nodiscard]] std::uint64_t newest() const {
    std::uint64_t found = commits_.empty() ? 0 : commits_.rbegin()->first;
    for (const auto& [version, one] : checkpoints_)
      if (one.complete()) found = std::max(found, version);
    return found;
  }
  [[noreturn]] void no_version(std::uint64_t wanted) const {
    // Of all versions, those that follow a checkpoint without a gap, or the first commit.
    std::uint64_t first = 0;
    if (!commits_.contains(0))
      for (const auto& [version, one] : checkpoints_)
        if (one.complete()) {
          first = version;
          break;
        }
    throw error(errc::missing,
                {"the log does not have version ", wanted, ", or not all that it is made of; versions ",
                 first, " to ", newest(), " may be there"})
        .in_file(folder_);
  }
  [[nodiscard]] std::uint64_t version_at(std::int64_t timestamp) const {
    std::optional<std::uint64_t> found;
    std::vector<std::string> paths;
    std::vector<std::uint64_t> versions;
    for (const auto& [version, path] : commits_) {
      paths.push_back(path);
      versions.push_back(version);
    }
    std::vector<std::int64_t> written(paths.size());
    std::size_t at = 0;
    const auto passes = [&](std::size_t commit) {  // all commits before are complete
      for (; at < commit; ++at) {
        if (written[at] == 0) written[at] = time_of_file(paths[at]);
        if (written[at] > timestamp) return false;
        found = versions[at];
      }
      return true;
    };
    const bool all = read_lines(paths, [&](std::size_t commit, const nlohmann::json& action) {
      if (!passes(commit)) return false;
      if (!action.contains("commitInfo")) return true;
      const nlohmann::json& info = action["commitInfo"];
      for (const char* name : {"timestamp", "inCommitTimestamp"})
        if (info.is_object() && info.contains(name) && info[name].is_number_integer())
          written[commit] = number_at<std::int64_t>(info, name);
      return true;
    });
    if (all) (void)passes(paths.size());
    if (!found)
      throw error(errc::missing, {"the log has no version that was there ", timestamp, " ms after 1970"})
          .in_file(folder_);
    return *found;
  }
  [[nodiscard]] std::int64_t time_of_file(const std::string& path) const {
    if (!objects_.local())
      throw error(errc::argument, "the commit does not say when it was made; name a version").in_file(path);
    struct stat facts {};
    return ::stat(path.c_str(), &facts) != 0 ? 0 : std::int64_t{facts.st_mtime} * 1000;
  }

  // Calls `work(i, action)` for all lines of files, in their order, until it returns false; returns whether
  // it never did.
  template <class Work>
  bool read_lines(const std::vector<std::string>& paths, Work&& work) const {
    return objects_.read_in_order(paths, max_bytes, [&](std::size_t i, bytes_view bytes) {
      return delta_lines(paths[i], text_of(bytes),
                         [&](const nlohmann::json& action) { return work(i, action); });
    });
  }
  void read_checkpoint(delta_state& state, const checkpoint& from) const {
    const std::span<const std::string> parts = from.parts();
    if (parts.front().ends_with(".json"))
      read_lines({parts.begin(), parts.end()}, [&](std::size_t, const nlohmann::json& action) {
        state.apply(action);
        return true;
      });
    else
      read_rows(state, {parts.begin(), parts.end()});
    std::vector<std::string> sidecars = std::exchange(state.sidecars, {});
    for (std::string& name : sidecars)
      name = name.find('/') == name.npos ? name_in_folder(folder_, "_delta_log/_sidecars/" + hive_text(name))
                                         : delta_path(folder_, name);
    read_rows(state, sidecars);
  }
  // Statistics are most of a checkpoint, and are not used.
  [[nodiscard]] static std::vector<int> columns_of(const parquet::SchemaDescriptor& schema) {
    std::vector<int> made;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const std::vector<std::string> path = schema.Column(i)->path()->ToDotVector();
      constexpr std::array unused{"stats", "stats_parsed", "partitionValues_parsed", "tags"};
      const bool needed =
          path.size() < 2 || std::ranges::none_of(unused, [&](const char* one) { return path[1] == one; });
      if (delta_state::knows(path.front()) && needed) made.push_back(i);
    }
    return made;
  }
  template <class Reader>
  [[nodiscard]] static arrow::Status read_whole(Reader& reader, std::shared_ptr<arrow::Table>& into) {
    const std::vector<int> columns = columns_of(*reader.parquet_reader()->metadata()->schema());
    if constexpr (requires { reader.ReadTable(columns).status(); }) {
      ARROW_ASSIGN_OR_RAISE(into, reader.ReadTable(columns));
      return arrow::Status::OK();
    } else {  // before Arrow 24
      return reader.ReadTable(columns, &into);
    }
  }
  // Files of checkpoints, of which some are read at once. They are applied one after another: an action may
  // be that of a file before.
  void read_rows(delta_state& state, const std::vector<std::string>& paths) const {
    if (paths.empty()) return;
    constexpr std::size_t max_in_flight = table_objects::max_in_flight;
    objects_.open(paths, [&](session_view session) {
      std::vector<std::uint64_t> sizes(paths.size());
      for_each_in_parallel(paths.size(), max_in_flight,
                           [&](std::size_t i) { sizes[i] = session.size(static_cast<object_id>(i)); });
      for (std::size_t first = 0; first < paths.size();) {
        const auto left = std::span<const std::uint64_t>(sizes).subspan(first);
        const std::size_t count =
            table_objects::fitting(left.first(std::min(max_in_flight, left.size())), table_objects::max_held);
        std::vector<std::shared_ptr<arrow::Table>> tables(count);
        for_each_in_parallel(count, count, [&](std::size_t i) {
          guarded(paths[first + i], [&] { tables[i] = rows_of(session, static_cast<object_id>(first + i)); });
        });
        for (std::size_t i = 0; i < count; ++i) {
          guarded(paths[first + i], [&] { apply(state, *tables[i]); });
          tables[i].reset();
        }
        first += count;
      }
    });
  }
  template <class Work>
  static void guarded(const std::string& path, Work&& work) {
    try {
      work();
    } catch (const nlohmann::json::exception& e) {
      throw error(errc::format, {"the checkpoint is not as Delta writes it: ", e.what()}).in_file(path);
    } catch (error& e) {
      e.in_file(path);
      throw;
    }
  }
  [[nodiscard]] static std::shared_ptr<arrow::Table> rows_of(session_view session, object_id object) {
    std::shared_ptr<arrow::Table> table;
    const parquet_memory unused(0);
    read_parquet(session, object, unused, 0, [&](const std::shared_ptr<parquet_input>& input) {
      parquet::arrow::FileReaderBuilder builder;
      ARROW_RETURN_NOT_OK(builder.Open(input, parquet_pages(arrow::default_memory_pool(), true)));
      std::unique_ptr<parquet::arrow::FileReader> reader;
      ARROW_RETURN_NOT_OK(builder.Build(&reader));
      return read_whole(*reader, table);
    });
    return table;
  }
  static void apply(delta_state& state, const arrow::Table& table) {
    for (int column = 0; column < table.num_columns(); ++column) {
      const std::string& name = table.field(column)->name();
      for (const std::shared_ptr<arrow::Array>& values : table.column(column)->chunks())
        for (std::int64_t row = 0; row < values->length(); ++row)
          if (!values->IsNull(row)) state.apply({{name, delta_value(*values, row)}});
    }
  }

  static constexpr std::uint64_t max_bytes = 1_GiB;

  std::string folder_;
  table_objects objects_;
  std::map<std::uint64_t, std::string> commits_;
  std::map<std::uint64_t, checkpoint> checkpoints_;
};

/// A version of a table: its files, and what the table says of them.
struct delta_snapshot {
  std::vector<std::string> paths;
  table_facts table;
};

/// `names`: of the files in the log of the table in a folder.
[[nodiscard]] inline delta_snapshot read_delta(const std::string& folder, std::span<const std::string> names,
                                               const table_objects& objects,
                                               std::optional<std::uint64_t> version,
                                               std::optional<std::int64_t> timestamp) {
  const delta_state state = delta_log(folder, names, objects).read(version, timestamp);
  return {state.paths(folder), state.facts(folder, objects)};
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/delta.hpp

namespace penstock::inline v0_1 {

/// Options of `delta`: which version of the table, and how its files are read. At most one of the first two.
struct delta_options {
  std::optional<std::uint64_t> version = {};   ///< none: the newest
  std::optional<std::int64_t> timestamp = {};  ///< the version at that time, in milliseconds since 1970
  parquet_options files = {};
};

/// Tables of Delta Lake.
///
///     auto rows = delta("sales", {.version = 3}) | where<"year">(equals(2025)) | shuffle(seed(7)) |
///                 decode<field<"amount", arrow_value<double>>>;
///
///
/// In: the table's folder in the local file system; or a storage that has the files of the table's log, among
/// others or alone, such as `s3(s3::list("bucket/sales/_delta_log/"))`: the table's other files are opened by
/// their names, with the storage's options.
/// Out: the source `parquet` of the files of one version, in the order of their paths, without rows that
/// deletion vectors name. Partition columns are columns; a column that was added later is null in older
/// files. With column mapping, columns and fields of structs have their logical names; by `id`, columns are
/// found by their numbers where files have some, and fields by name. Columns that were widened have the
/// table's type and exact values. Timestamps are microseconds, those that are INT96 in files, too.
/// Kind: as `parquet`. The plan names the version; its fingerprint is that of the table's id, the version and
/// its files, so that a table that has grown is another dataset unless the version is named.
/// Making the plan reads the log from its last checkpoint on, 16 files at once, and what `parquet` reads;
/// files of the log in memory have at most 256 MiB together, or are a single one, of at most 1 GiB; that is
/// as they are stored, and the rows of a checkpoint may take several times as much while it is read. A
/// version's time is what its commit says of itself, as Spark's `inCommitTimestamp`, or else `timestamp`, or
/// else, of a local file, that of the file.
/// Errors: errc::missing for what is no table, and for a version that is not in the log any more, with those
/// that are; errc::format, with the file, for a log or a deletion vector that is damaged, and for a column
/// whose type in a file does not become the table's by widening; errc::checksum for a deletion vector
/// whose checksum is not its own; errc::limit for one of more than 2^27 rows; errc::argument for reader
/// features that are not known, with their names, for files in another file system, and for the logs of two
/// tables; what `parquet` throws, and the storage.
/// Threads: as `parquet`.
/// Source: Delta Lake, PROTOCOL.md.
[[nodiscard]] inline parquet_source<mapped_file> delta(const std::string& path,
                                                       const delta_options& options = {}) {
  const std::string folder = detail::files::local_path(detail::name_of_uri(path));
  const detail::table_objects objects{file(std::vector<std::string>())};
  detail::delta_snapshot found = detail::read_delta(folder, detail::delta_log_files(folder), objects,
                                                    options.version, options.timestamp);
  return {mapped_file(std::move(found.paths)), options.files, &found.table};
}
template <renaming_storage Storage>
[[nodiscard]] parquet_source<Storage> delta(const Storage& log, const delta_options& options = {}) {
  detail::delta_snapshot found =
      detail::read_delta(detail::delta_folder(log.names()), log.names(), detail::table_objects(log),
                         options.version, options.timestamp);
  return {log.with_names(std::move(found.paths)), options.files, &found.table};
}

/// Tables of Delta Lake for `dataset`, recognised by their log, in the table's folder or in a storage, which
/// may have the table's other files, too.
struct delta_format {
  static constexpr std::string_view name = "delta";
  using sources = std::variant<parquet_source<mapped_file>>;
  template <renaming_storage Storage>
  using stored_sources = std::variant<parquet_source<Storage>>;

  delta_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return there.has_folder("_delta_log") ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const { return delta(there.path(), options); }
  template <renaming_storage Storage>
  [[nodiscard]] stored_sources<Storage> open_in(const Storage& where, const dataset_listing&) const {
    return delta(where, options);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_bytes.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_schema.hpp

namespace penstock::inline v0_1 {
namespace detail {

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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_metadata.hpp

namespace penstock::inline v0_1 {
namespace detail {

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
    try {
      return work();
    } catch (const json::exception& e) {
      throw error(errc::format, {"the table's metadata are not as Iceberg writes them: ", e.what()})
          .in_file(path_);
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_files.hpp

namespace penstock::inline v0_1 {
namespace detail {

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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_deletes.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// A value of a column of texts, which may be a dictionary's.
[[nodiscard]] inline std::string_view iceberg_text(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) throw error(errc::format, "the file has a null as a path: it is damaged");
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return static_cast<const arrow::BinaryArray&>(array).GetView(row);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return static_cast<const arrow::BinaryViewArray&>(array).GetView(row);
    case arrow::Type::DICTIONARY: {
      const auto& numbers = static_cast<const arrow::DictionaryArray&>(array);
      return iceberg_text(*numbers.dictionary(), numbers.GetValueIndex(row));
    }
    default:
      throw error(errc::format, {"the file has paths of type ", array.type()->ToString()});
  }
}

/// Calls `take(path, position)` for each row of a file of position deletes.
///
/// Source: Apache Iceberg, "Spec", "Position Delete Files".
template <class Take>
void read_iceberg_deletes(session_view session, object_id object, Take&& take) {
  constexpr int path_number = 2147483546, position_number = 2147483545;
  const parquet_memory unused(0);
  read_parquet(session, object, unused, 0, [&](const std::shared_ptr<parquet_input>& input) {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(input, parquet_pages(arrow::default_memory_pool(), true)));
    const auto metadata = builder.raw_reader()->metadata();
    std::vector<int> columns{-1, -1};
    for (int i = 0; i < metadata->schema()->num_columns(); ++i) {
      const auto& node = *metadata->schema()->Column(i)->schema_node();
      const std::string name = metadata->schema()->Column(i)->path()->ToDotString();
      if (node.field_id() == path_number || (node.field_id() < 0 && name == "file_path")) columns[0] = i;
      if (node.field_id() == position_number || (node.field_id() < 0 && name == "pos")) columns[1] = i;
    }
    if (columns[0] < 0 || columns[1] < 0)
      throw error(errc::format, "the file of position deletes does not have the columns file_path and pos");
    // A path in each row may be more than an array of texts can hold.
    parquet::ArrowReaderProperties how;
    how.set_read_dictionary(columns[0], true);
    builder.properties(how);
    std::unique_ptr<parquet::arrow::FileReader> reader;
    ARROW_RETURN_NOT_OK(builder.Build(&reader));
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      std::shared_ptr<arrow::Table> table;
      ARROW_RETURN_NOT_OK(read_parquet_group(*reader, group, columns, table));
      const bool in_order = columns[0] < columns[1];
      arrow::TableBatchReader batches(*table);
      for (std::shared_ptr<arrow::RecordBatch> batch;;) {
        ARROW_RETURN_NOT_OK(batches.ReadNext(&batch));
        if (batch == nullptr) break;
        const arrow::Array& paths = *batch->column(in_order ? 0 : 1);
        const arrow::Array& positions = *batch->column(in_order ? 1 : 0);
        if (positions.type_id() != arrow::Type::INT64 || positions.null_count() != 0)
          throw error(errc::format, "the file of position deletes has positions that are no numbers");
        for (std::int64_t row = 0; row < batch->num_rows(); ++row)
          take(iceberg_text(paths, row), static_cast<const arrow::Int64Array&>(positions).Value(row));
      }
    }
    return arrow::Status::OK();
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
    for_each_in_parallel(count, std::min(count, table_objects::max_in_flight), [&](std::size_t i) {
      try {
        work(first + i);
      } catch (error& e) {
        e.in_file(names[first + i]);
        throw;
      }
    });
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

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/iceberg_table.hpp

namespace penstock::inline v0_1 {
namespace detail {

/// A snapshot of a table: its files, and what the table says of them.
struct iceberg_snapshot {
  std::vector<std::string> paths;
  table_facts table;
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
[[nodiscard]] inline iceberg_snapshot read_iceberg(std::string_view called, iceberg_place where,
                                                   const table_objects& objects,
                                                   const iceberg_metadata::wish& asked) {
  const iceberg_metadata table(std::move(where), objects);
  const nlohmann::json snapshot = table.snapshot(asked);
  const iceberg_type columns = table.schema(snapshot, asked);
  iceberg_files files(table, snapshot);
  iceberg_snapshot found;
  for (const iceberg_file& one : files.data) found.paths.push_back(table.find(one.written));
  found.table = std::move(iceberg_facts(table, files, columns).made);
  const std::int64_t number = snapshot.is_null() ? -1 : number_at<std::int64_t>(snapshot, "snapshot-id");
  found.table.says = snapshot.is_null() ? text({"iceberg('", called, "', no snapshot)"})
                                        : text({"iceberg('", called, "', snapshot ", number, ")"});
  const std::string uuid = table.guarded([&] { return table.uuid(); });
  found.table.mark = mix64(hash_bytes(static_cast<std::uint64_t>(number), bytes_of(uuid)));
  return found;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/iceberg.hpp

namespace penstock::inline v0_1 {

/// Options of `iceberg`: which snapshot of the table, and how its files are read. At most one of the first
/// three.
struct iceberg_options {
  std::optional<std::int64_t> snapshot = {};   ///< its id; none: the current one
  std::optional<std::int64_t> timestamp = {};  ///< what was current then, in milliseconds since 1970
  std::optional<std::string> ref = {};         ///< the newest of a branch, or that of a tag
  parquet_options files = {};
};

/// Tables of Apache Iceberg.
///
///     auto rows = iceberg("sales", {.snapshot = 3051729675574597004}) | where<"year">(equals(2025)) |
///                 shuffle(seed(7)) | decode<field<"amount", arrow_value<double>>>;
///
/// In: the table's folder in the local file system, or one of its metadata files, as a path or file:///path;
/// or a storage that has the files of the table's folder metadata, among others or alone, such as
/// `s3(s3::list("bucket/sales/metadata/"))`, or one of them: the table's other files are opened by their
/// names, with the storage's options.
/// Of a folder the newest metadata file is taken: the one that `version-hint.text` names, or one behind it,
/// otherwise the one with the highest number. Format versions 1, 2 and 3. A table that was moved or copied is
/// read where it is now.
/// Out: the source `parquet` of the snapshot's files, in the order of their paths, without rows that position
/// deletes and deletion vectors name. Columns are found by their numbers, also within structs; where files
/// have no numbers, by the names that the table's name mapping has for them, or else by their own. A column
/// that was renamed keeps its values, one that was added is null in older files. A snapshot or a tag that is
/// named has the columns of its time. Columns that partition all files as they are come from the manifests,
/// and stand last. No snapshot: an empty dataset.
/// Kind: as `parquet`. The plan names the snapshot; its fingerprint is that of the table's UUID, the
/// snapshot's id, its files and the columns.
/// Making the plan reads the metadata, the manifests, deletes, and what `parquet` reads, 16 files at once;
/// manifests in memory have at most 256 MiB together, or are a single one.
/// Errors: errc::missing for what is no table, a file that is not there, and a snapshot, a branch or a tag
/// that is not there, with those that are; errc::format, with the file and the offset, for what is damaged,
/// and for fields of structs in lists and maps that were added or dropped; errc::checksum for a deletion
/// vector whose checksum is not its own; errc::argument for equality deletes, default values, files that are
/// not Parquet, encrypted or in another file system, manifests that are packed with other codecs than deflate
/// and zstandard, two newest metadata files, and metadata of two tables; errc::limit for metadata of more
/// than 512 MiB and deletion vectors of more than 2^27 rows; what `parquet` throws, and the storage.
/// Threads: as `parquet`.
/// Source: Apache Iceberg, "Spec"; Apache Avro 1.12, "Specification".
[[nodiscard]] inline parquet_source<mapped_file> iceberg(const std::string& given,
                                                         const iceberg_options& options = {}) {
  const std::string path = detail::files::local_path(detail::name_of_uri(given));
  const detail::table_objects objects{file(std::vector<std::string>())};
  detail::iceberg_snapshot found =
      detail::read_iceberg(path, detail::iceberg_place_of(path, objects), objects,
                           {options.snapshot, options.timestamp, options.ref});
  return {mapped_file(std::move(found.paths)), options.files, &found.table};
}
template <renaming_storage Storage>
[[nodiscard]] parquet_source<Storage> iceberg(const Storage& metadata, const iceberg_options& options = {}) {
  const detail::table_objects objects(metadata);
  detail::iceberg_place where = detail::iceberg_place_of(metadata.names(), objects);
  const std::string called = where.folder;
  detail::iceberg_snapshot found = detail::read_iceberg(called, std::move(where), objects,
                                                        {options.snapshot, options.timestamp, options.ref});
  return {metadata.with_names(std::move(found.paths)), options.files, &found.table};
}

/// Tables of Apache Iceberg for `dataset`, recognised by a folder `metadata` with metadata files; in a
/// storage by these files, beside which it may have the table's others.
struct iceberg_format {
  static constexpr std::string_view name = "iceberg";
  using sources = std::variant<parquet_source<mapped_file>>;
  template <renaming_storage Storage>
  using stored_sources = std::variant<parquet_source<Storage>>;

  iceberg_options options = {};

  [[nodiscard]] static format_fit look(const dataset_listing& there) {
    return detail::has_iceberg_metadata(there) ? format_fit::description : format_fit::none;
  }
  [[nodiscard]] sources open(const dataset_listing& there) const { return iceberg(there.path(), options); }
  template <renaming_storage Storage>
  [[nodiscard]] stored_sources<Storage> open_in(const Storage& where, const dataset_listing&) const {
    return iceberg(where, options);
  }
};

}  // namespace penstock::inline v0_1

// ---- penstock/source/tables/parquet_columns.hpp

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {

/// A value for `parquet_writer`: a number, a truth value, a text, bytes, a list of numbers, or nothing, which
/// is null. Texts, bytes and lists are not copied: they live until the call ends.
class parquet_value {
 public:
  using list =
      std::variant<std::span<const std::int8_t>, std::span<const std::int16_t>, std::span<const std::int32_t>,
                   std::span<const std::int64_t>, std::span<const std::uint8_t>,
                   std::span<const std::uint16_t>, std::span<const std::uint32_t>,
                   std::span<const std::uint64_t>, std::span<const float>, std::span<const double>>;
  using any = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string_view, list>;

  parquet_value() = default;
  parquet_value(std::nullopt_t) noexcept {}  // NOLINT: as for an optional
  template <class T>
    requires std::is_arithmetic_v<T>
  parquet_value(T number) noexcept {  // NOLINT: {"label", 7}
    if constexpr (std::same_as<T, bool>)
      value_ = number;
    else if constexpr (std::floating_point<T>)
      value_ = static_cast<double>(number);
    else if constexpr (std::is_signed_v<T>)
      value_ = static_cast<std::int64_t>(number);
    else
      value_ = static_cast<std::uint64_t>(number);
  }
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  parquet_value(const T& text) noexcept : value_(static_cast<std::string_view>(text)) {}  // NOLINT
  parquet_value(bytes_view bytes) noexcept : value_(text_of(bytes)) {}                    // NOLINT
  template <class T>
    requires std::constructible_from<list, std::span<const T>>
  parquet_value(std::span<const T> values) noexcept : value_(list(values)) {}  // NOLINT
  template <class T>
    requires std::constructible_from<list, std::span<const T>>
  parquet_value(const std::vector<T>& values) noexcept  // NOLINT
      : value_(list(std::span<const T>(values.data(), values.size()))) {}

  [[nodiscard]] const any& get() const noexcept { return value_; }

 private:
  any value_;
};

namespace detail {

inline void check_arrow(const arrow::Status& done, errc code = errc::io) {
  if (done.IsOutOfMemory()) throw std::bad_alloc();
  if (!done.ok()) throw error(code, {"Arrow says: ", arrow_message(done.message())});
}

/// The type that Arrow prints like this.
[[nodiscard]] inline std::shared_ptr<arrow::DataType> parquet_type(std::string_view text) {
  using arrow::TimeUnit;
  const std::array<std::pair<std::string_view, std::shared_ptr<arrow::DataType>>, 18> flat{
      {{"bool", arrow::boolean()},
       {"int8", arrow::int8()},
       {"int16", arrow::int16()},
       {"int32", arrow::int32()},
       {"int64", arrow::int64()},
       {"uint8", arrow::uint8()},
       {"uint16", arrow::uint16()},
       {"uint32", arrow::uint32()},
       {"uint64", arrow::uint64()},
       {"float", arrow::float32()},
       {"double", arrow::float64()},
       {"string", arrow::utf8()},
       {"binary", arrow::binary()},
       {"date32[day]", arrow::date32()},
       {"timestamp[ms]", arrow::timestamp(TimeUnit::MILLI)},
       {"timestamp[us]", arrow::timestamp(TimeUnit::MICRO)},
       {"timestamp[ns]", arrow::timestamp(TimeUnit::NANO)},
       {"large_binary", arrow::large_binary()}}};
  for (const auto& [name, type] : flat)
    if (name == text) return type;
  const std::size_t open = text.find('<'), close = text.rfind('>');
  if (open != text.npos && close != text.npos && close > open) {
    const auto inner = parquet_type(text.substr(open + 1, close - open - 1));
    const std::string_view front = text.substr(0, open), behind = text.substr(close + 1);
    if (front == "list" && behind.empty() && inner->num_fields() == 0) return arrow::list(inner);
    std::int32_t size = 0;
    if (front == "fixed_size_list" && behind.size() > 2 && behind.front() == '[' && behind.back() == ']' &&
        inner->num_fields() == 0) {
      const auto end = std::from_chars(behind.data() + 1, behind.data() + behind.size(), size).ptr;
      if (end == behind.data() + behind.size() - 1 && size > 0) return arrow::fixed_size_list(inner, size);
    }
  }
  throw error(errc::argument, {"'", text,
                               "' is no type that parquet_writer knows, such as \"int64\", \"string\", "
                               "\"binary\" or \"list<float>\""});
}

/// The columns of a row group that is being made.
class parquet_columns {
 public:
  explicit parquet_columns(const std::vector<std::pair<std::string, std::string>>& columns) {
    if (columns.empty()) throw error(errc::argument, "a file needs at least one column");
    std::vector<std::shared_ptr<arrow::Field>> fields;
    for (const auto& [name, type] : columns) {
      if (find(name) != builders_.size())
        throw error(errc::argument, {"two columns are called '", name, "'"});
      fields.push_back(arrow::field(name, parquet_type(type)));
      names_.push_back(name);
      builders_.emplace_back();
      check_arrow(arrow::MakeBuilder(arrow::default_memory_pool(), fields.back()->type(), &builders_.back()));
    }
    schema_ = arrow::schema(std::move(fields));
  }

  [[nodiscard]] const std::shared_ptr<arrow::Schema>& schema() const noexcept { return schema_; }
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  /// Of the values, about.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// Adds a row: all of it, or nothing.
  void append(std::span<const std::pair<std::string_view, parquet_value>> row) {
    std::vector<const parquet_value*> values(builders_.size());
    for (const auto& [name, value] : row) {
      const std::size_t at = find(name);
      if (at == builders_.size()) throw error(errc::argument, {"there is no column '", name, "'"});
      if (values[at] != nullptr) throw error(errc::argument, {"the column '", name, "' is given twice"});
      values[at] = &value;
      check(value, *schema_->field(static_cast<int>(at))->type(), name);
    }
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      if (values[i] == nullptr)
        check_arrow(builders_[i]->AppendNull());
      else
        append_value(*builders_[i], *values[i]);
    }
    ++rows_;
  }

  /// The rows so far, and begins anew.
  [[nodiscard]] std::shared_ptr<arrow::Table> finish() {
    std::vector<std::shared_ptr<arrow::Array>> arrays(builders_.size());
    for (std::size_t i = 0; i < builders_.size(); ++i) check_arrow(builders_[i]->Finish(&arrays[i]));
    const auto count = static_cast<std::int64_t>(std::exchange(rows_, 0));
    bytes_ = 0;
    return arrow::Table::Make(schema_, arrays, count);
  }

 private:
  [[nodiscard]] std::size_t find(std::string_view name) const noexcept {
    std::size_t at = 0;
    while (at < names_.size() && names_[at] != name) ++at;
    return at;
  }

  // Calls `work.operator()<Builder>()` for a type whose values are numbers; returns false for others.
  template <class Work>
  static bool with_number(const arrow::DataType& type, Work&& work) {
    switch (type.id()) {
      case arrow::Type::INT8:
        return work.template operator()<arrow::Int8Type>();
      case arrow::Type::INT16:
        return work.template operator()<arrow::Int16Type>();
      case arrow::Type::INT32:
        return work.template operator()<arrow::Int32Type>();
      case arrow::Type::INT64:
        return work.template operator()<arrow::Int64Type>();
      case arrow::Type::UINT8:
        return work.template operator()<arrow::UInt8Type>();
      case arrow::Type::UINT16:
        return work.template operator()<arrow::UInt16Type>();
      case arrow::Type::UINT32:
        return work.template operator()<arrow::UInt32Type>();
      case arrow::Type::UINT64:
        return work.template operator()<arrow::UInt64Type>();
      case arrow::Type::FLOAT:
        return work.template operator()<arrow::FloatType>();
      case arrow::Type::DOUBLE:
        return work.template operator()<arrow::DoubleType>();
      case arrow::Type::DATE32:
        return work.template operator()<arrow::Date32Type>();
      case arrow::Type::TIMESTAMP:
        return work.template operator()<arrow::TimestampType>();
      default:
        return false;
    }
  }

  // Whether a number is one of the type `To`, exactly; a number of floating point may be rounded.
  template <class To, class From>
  [[nodiscard]] static bool fits(From value) noexcept {
    if constexpr (std::floating_point<To>)
      return true;
    else if constexpr (std::floating_point<From>)
      return false;
    else
      return std::in_range<To>(value);
  }

  static void check(const parquet_value& value, const arrow::DataType& type, std::string_view name) {
    const bool good = std::visit(
        [&]<class T>(const T& given) {
          if constexpr (std::same_as<T, std::monostate>) {
            return true;
          } else if constexpr (std::same_as<T, bool>) {
            return type.id() == arrow::Type::BOOL;
          } else if constexpr (std::same_as<T, std::string_view>) {
            return type.id() == arrow::Type::STRING || type.id() == arrow::Type::BINARY ||
                   type.id() == arrow::Type::LARGE_BINARY;
          } else if constexpr (std::same_as<T, parquet_value::list>) {
            return std::visit(
                [&]<class N>(std::span<const N> numbers) {
                  if (type.id() == arrow::Type::FIXED_SIZE_LIST) {
                    const auto size = static_cast<const arrow::FixedSizeListType&>(type).list_size();
                    if (numbers.size() != static_cast<std::size_t>(size)) return false;
                  } else if (type.id() != arrow::Type::LIST) {
                    return false;
                  }
                  return with_number(*type.field(0)->type(), [&]<class To>() {
                    for (const N one : numbers)
                      if (!fits<typename To::c_type>(one)) return false;
                    return true;
                  });
                },
                given);
          } else {
            return with_number(type, [&]<class To>() { return fits<typename To::c_type>(given); });
          }
        },
        value.get());
    if (!good)
      throw error(errc::argument,
                  {"the value for the column '", name, "' is none of its type, ", type.ToString()});
  }

  void append_value(arrow::ArrayBuilder& builder, const parquet_value& value) {
    std::visit(
        [&]<class T>(const T& given) {
          if constexpr (std::same_as<T, std::monostate>) {
            check_arrow(builder.AppendNull());
          } else if constexpr (std::same_as<T, bool>) {
            check_arrow(static_cast<arrow::BooleanBuilder&>(builder).Append(given));
            ++bytes_;
          } else if constexpr (std::same_as<T, std::string_view>) {
            if (builder.type()->id() == arrow::Type::LARGE_BINARY)
              check_arrow(static_cast<arrow::LargeBinaryBuilder&>(builder).Append(given));
            else
              check_arrow(static_cast<arrow::BinaryBuilder&>(builder).Append(given));
            bytes_ += given.size() + 4;
          } else if constexpr (std::same_as<T, parquet_value::list>) {
            append_list(builder, given);
          } else {
            append_number(builder, given);
          }
        },
        value.get());
  }
  template <class N>
  void append_number(arrow::ArrayBuilder& builder, N number) {
    with_number(*builder.type(), [&]<class To>() {
      using c_type = typename To::c_type;
      check_arrow(static_cast<typename arrow::TypeTraits<To>::BuilderType&>(builder).Append(
          static_cast<c_type>(number)));
      bytes_ += sizeof(c_type);
      return true;
    });
  }
  void append_list(arrow::ArrayBuilder& builder, const parquet_value::list& given) {
    arrow::ArrayBuilder* values = nullptr;
    if (builder.type()->id() == arrow::Type::LIST) {
      auto& lists = static_cast<arrow::ListBuilder&>(builder);
      check_arrow(lists.Append());
      values = lists.value_builder();
    } else {
      auto& lists = static_cast<arrow::FixedSizeListBuilder&>(builder);
      check_arrow(lists.Append());
      values = lists.value_builder();
    }
    std::visit(
        [&](auto numbers) {
          for (const auto one : numbers) append_number(*values, one);
        },
        given);
  }

  std::vector<std::string> names_;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders_;
  std::shared_ptr<arrow::Schema> schema_;
  std::uint64_t rows_ = 0, bytes_ = 0;
};

/// How a Parquet file is written.
struct parquet_output_options {
  std::string_view compression;
  bool page_index, page_checksum;
  std::span<const std::string> bloom;
};

/// A Parquet file that appears when it is complete.
class parquet_output {
 public:
  parquet_output(std::string path, const std::shared_ptr<arrow::Schema>& schema,
                 const parquet_output_options& options)
      : path_(path), sink_(std::make_shared<sink>(std::move(path))) {
    try {
      parquet::WriterProperties::Builder how;
      if (options.page_index) how.enable_write_page_index();
      if (options.page_checksum) how.enable_page_checksum();
      const auto codec = arrow::util::Codec::GetCompressionType(
          options.compression == "none" ? "uncompressed" : std::string(options.compression));
      if (!codec.ok() || !arrow::util::Codec::IsAvailable(*codec))
        throw error(errc::argument, {"Arrow was built without the compression '", options.compression,
                                     "'; \"snappy\" and \"none\" are most often there"});
      how.compression(*codec);
      for (const std::string& one : options.bloom) {
        if (schema->GetFieldIndex(one) < 0)
          throw error(errc::argument, {"there is no column '", one, "' for a Bloom filter"});
        enable_bloom(how, one);
      }
      auto opened =
          parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), sink_, how.build(),
                                           parquet::ArrowWriterProperties::Builder().store_schema()->build());
      check_arrow(opened.status());
      writer_ = std::move(*opened);
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// A row group.
  void write(const std::shared_ptr<arrow::Table>& table) {
    try {
      check(writer_->WriteTable(*table, table->num_rows()));
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
  }
  void close() {
    try {
      check(writer_->Close());
      (void)sink_->file.commit();
    } catch (error& e) {
      e.in_file(path_);
      throw;
    }
  }

 private:
  struct sink : arrow::io::OutputStream {
    explicit sink(std::string path) : file(std::move(path)) {}
    using arrow::io::OutputStream::Write;
    arrow::Status Write(const void* data, std::int64_t size) override {
      try {
        file.write({static_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
        return arrow::Status::OK();
      } catch (const error& e) {
        failure.emplace(e);
        return arrow::Status::IOError("the file cannot be written");
      }
    }
    arrow::Status Close() override { return arrow::Status::OK(); }
    [[nodiscard]] bool closed() const override { return false; }
    [[nodiscard]] arrow::Result<std::int64_t> Tell() const override {
      return static_cast<std::int64_t>(file.size());
    }

    output_file file;
    std::optional<error> failure;
  };

  template <class Builder>
  static void enable_bloom(Builder& how, const std::string& column) {
    if constexpr (requires { how.enable_bloom_filter(column, {}); })
      how.enable_bloom_filter(column, {});
    else
      throw error(errc::argument,
                  "this version of Arrow writes no Bloom filters: leave "
                  "parquet_writer_options::bloom empty");
  }
  void check(const arrow::Status& done) const {
    if (!done.ok() && sink_->failure) throw *sink_->failure;
    check_arrow(done);
  }

  std::string path_;
  std::shared_ptr<sink> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/source/parquet_writer.hpp

namespace penstock::inline v0_1 {

/// Options of `parquet_writer`.
struct parquet_writer_options {
  std::uint64_t group_rows = std::uint64_t{1} << 20;  ///< the most rows of a row group
  std::uint64_t group_bytes = 64_MiB;  ///< about the most bytes of a row group, before compression
  /// "none", "snappy", "gzip", "zstd", "brotli" or "lz4_raw", as far as Arrow was built with it.
  std::string compression = "zstd";
  bool page_index = true;               ///< the smallest and largest values of each page
  bool page_checksum = false;           ///< a CRC-32 of each page, which readers compare
  std::vector<std::string> bloom = {};  ///< columns that get Bloom filters; needs Arrow 24
};

/// Writes a Parquet file that `parquet`, and everything else that reads Parquet, reads.
///
///     parquet_writer out("photos.parquet", {{"image", "binary"}, {"label", "int64"},
///                                           {"embedding", "fixed_size_list<float>[3]"}});
///     const std::vector<float> embedding{0.5f, 1, 2};
///     out.write({{"image", jpeg_bytes}, {"label", 7}, {"embedding", embedding}});
///     out.close();
///
/// In: the path; the columns with their types, as Arrow prints them: "bool", "int8" to "uint64", "float",
/// "double", "string", "binary", "date32[day]", "timestamp[ms]", "timestamp[us]", "timestamp[ns]", and lists
/// of these, `list<float>` or `fixed_size_list<float>[3]`; and a row's values, of which those that are not
/// given are null. Out: the file, which appears under its name when it is complete and flushed, at `close`;
/// without it there is none.
/// Cost: a row group is kept in memory.
/// Errors: errc::argument for a type that is not known, a column that is unknown or given twice, and a value
/// that does not fit its column; errc::io with the path if the file cannot be written; errc::state after
/// `close`, and after a failure.
/// Threads: one at a time. Source: Arrow C++, `parquet::arrow::FileWriter`.
class parquet_writer {
 public:
  /// A value, and its column.
  using field = std::pair<std::string_view, parquet_value>;

  parquet_writer(std::string path, std::vector<std::pair<std::string, std::string>> columns,
                 parquet_writer_options options = {})
      : options_(std::move(options)),
        columns_(columns),
        file_(std::move(path), columns_.schema(),
              {options_.compression, options_.page_index, options_.page_checksum, options_.bloom}) {
    if (options_.group_rows == 0 || options_.group_bytes == 0)
      throw error(errc::argument, "a row group has at least one row and one byte").in_file(file_.path());
  }

  void write(std::span<const field> row) {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    try {
      columns_.append(row);
      if (columns_.rows() >= options_.group_rows || columns_.bytes() >= options_.group_bytes) flush();
    } catch (error& e) {
      e.in_file(file_.path());
      throw;
    }
  }
  void write(std::initializer_list<field> row) { write(std::span<const field>(row.begin(), row.size())); }

  /// Begins another row group.
  void flush() {
    if (columns_.rows() == 0) return;
    closed_ = true;  // if it fails
    file_.write(columns_.finish());
    closed_ = false;
  }

  /// Completes the file.
  void close() {
    if (closed_) throw error(errc::state, "the file is closed, or failed before").in_file(file_.path());
    flush();
    closed_ = true;
    file_.close();
  }

 private:
  parquet_writer_options options_;
  detail::parquet_columns columns_;
  detail::parquet_output file_;
  bool closed_ = false;
};

}  // namespace penstock::inline v0_1

// ---- penstock/storage/detail/arrow_session.hpp

// The headers of Arrow warn where ours do not.
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

namespace penstock::inline v0_1 {
namespace detail {

/// Reads files of a file system of Arrow, in the calling thread. Keeps some of them open.
class arrow_session {
  using opened = std::shared_ptr<arrow::io::RandomAccessFile>;
  /// What is known of a file; once it is, it holds for the session.
  struct facts {
    std::optional<object_version> version;
    opened file;
    std::list<object_id>::iterator place;  // if there is a file
  };

 public:
  static constexpr bool views = false;

  arrow_session(std::shared_ptr<arrow::fs::FileSystem> where, std::span<const std::string> names,
                std::size_t max_open)
      : file_system_(std::move(where)), names_(names), max_open_(max_open), facts_(names.size()) {}
  arrow_session(const arrow_session&) = delete;
  arrow_session& operator=(const arrow_session&) = delete;

  [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
  [[nodiscard]] object_version version(object_id id) const {
    check(id);
    {
      const std::scoped_lock held(lock_);
      if (facts_[id].version) return *facts_[id].version;
    }
    (void)open(id);
    const std::scoped_lock held(lock_);
    return *facts_[id].version;
  }
  void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
    check(id);
    const opened file = open(id);
    const std::uint64_t all = size(id);
    if (offset > all || into.size() > all - offset)
      throw error(errc::format,
                  {"the range of ", into.size(), " bytes goes beyond the end of the object, which has ", all})
          .in_file(names_[id])
          .at_offset(offset);
    if (into.empty()) return;
    requests_.fetch_add(1, std::memory_order_relaxed);
    const auto got =
        file->ReadAt(static_cast<std::int64_t>(offset), static_cast<std::int64_t>(into.size()), into.data());
    if (!got.ok()) throw_arrow(got.status(), names_[id], offset);
    if (*got != static_cast<std::int64_t>(into.size()))
      throw error(errc::io, {"the file ended after ", *got, " of ", into.size(),
                             " bytes, although it had more when it was opened"})
          .recurring()
          .in_file(names_[id])
          .at_offset(offset);
    bytes_.fetch_add(into.size(), std::memory_order_relaxed);
  }
  void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
  [[nodiscard]] storage_counters counters() const noexcept {
    return {.requests = requests_.load(std::memory_order_relaxed),
            .bytes = bytes_.load(std::memory_order_relaxed)};
  }

 private:
  void check(object_id id) const {
    if (id >= names_.size()) throw error(errc::argument, {"there is no object ", id});
  }
  [[nodiscard]] opened kept(object_id id) const {
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.file) recent_.splice(recent_.begin(), recent_, one.place);
    return one.file;
  }
  /// The file; one thread opens it, if several want to.
  [[nodiscard]] opened open(object_id id) const {
    opened found = kept(id);
    while (!found) {
      flight_.ask(id, [&] {
        found = kept(id);
        if (!found) found = open_anew(id);
      });
      if (!found) found = kept(id);  // another thread has opened it
    }
    return found;
  }
  [[nodiscard]] opened open_anew(object_id id) const {
    const std::string& path = names_[id];
    const auto info = file_system_->GetFileInfo(path);
    if (!info.ok()) throw_arrow(info.status(), path);
    if (info->type() != arrow::fs::FileType::File) {
      const bool missing = info->type() == arrow::fs::FileType::NotFound;
      throw error(errc::io, missing ? "there is no such file" : "it is a folder, not a file")
          .recurring()
          .in_file(path);
    }
    auto made = file_system_->OpenInputFile(*info);
    if (!made.ok()) throw_arrow(made.status(), path);
    const auto size = info->size() >= 0 ? arrow::Result<std::int64_t>(info->size()) : (*made)->GetSize();
    if (!size.ok()) throw_arrow(size.status(), path);
    const auto changed = info->mtime();
    const object_version now{
        static_cast<std::uint64_t>(*size),
        changed == arrow::fs::kNoTime ? 0 : static_cast<std::uint64_t>(changed.time_since_epoch().count())};
    opened oldest;  // is closed without the lock
    const std::scoped_lock held(lock_);
    facts& one = facts_[id];
    if (one.version && *one.version != now)
      throw error(errc::io, "the object was replaced while it was read; start again with the new one")
          .recurring()
          .in_file(path);
    recent_.push_front(id);
    one.version = now;
    one.file = *std::move(made);
    one.place = recent_.begin();
    if (recent_.size() > max_open_) {
      oldest = std::exchange(facts_[recent_.back()].file, nullptr);
      recent_.pop_back();
    }
    return one.file;
  }

  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  std::span<const std::string> names_;
  std::size_t max_open_;
  mutable single_flight flight_;
  mutable std::mutex lock_;
  mutable fixed_array<facts> facts_;
  mutable std::list<object_id> recent_;  // of the files that are open, the one used last first
  mutable std::atomic<std::uint64_t> requests_{0}, bytes_{0};
};

}  // namespace detail
}  // namespace penstock::inline v0_1

// ---- penstock/storage/arrow_files.hpp

namespace penstock::inline v0_1 {

/// Options of `arrow_files`.
struct arrow_files_options {
  std::size_t threads = 16;     ///< and so reads in the background that are in progress
  std::size_t open_files = 64;  ///< kept open by a session
};

/// Storage of files in any file system of Arrow: GCS, Azure, HDFS, its own S3, and what programs derive from
/// `arrow::fs::FileSystem`.
///
///     const auto disk = std::make_shared<arrow::fs::LocalFileSystem>();
///     const arrow_files shards(disk, "/data/train-{0000..0127}.tar");
///     const auto retried = retrying(throttled(shards));
///
/// In: a file system, and paths in it, without a scheme: a pattern whose braces are expanded (see
/// `expand_braces`), a list of paths that are taken as they are, or an `arrow::fs::FileSelector`, whose files
/// are listed when the storage is made and sorted by the bytes of their paths.
/// A session asks for a file's size and time of change once, and opens it at its first use; it keeps
/// `open_files` of them open. A file that was opened again and has changed is an error, never a mixture.
/// `read_many` reads with `threads` threads of the session, straight to where the bytes belong; Arrow's own
/// asynchronous reads would make a copy. Arrow cannot end a read: after `cancel`, and when the session is
/// destroyed, those in progress run to their ends.
/// Errors: errc::io with the path and what Arrow says, for what fails; missing files, folders, and what Arrow
/// reports as anything but an input-output error recur (see `error::recurs`). errc::format for a range beyond
/// the end, errc::argument for no file system and options that make no sense, errc::missing for a selector
/// that finds no file. What follows a `?` in a URL that Arrow shows is hidden.
/// Arrow itself tries some failures again; go around with `retrying` for those that it reports.
/// Threads: any number may use a session, if the file system's files allow reads by any number, as Arrow's
/// do.
/// Cost: one virtual call per read; no copy.
class arrow_files {
 public:
  /// What a run reads through; see `background_session` and `latent_session`.
  class session {
   public:
    static constexpr bool views = false;
    static constexpr bool has_latency = true;

    [[nodiscard]] std::uint64_t size(object_id id) const { return version(id).size; }
    /// Size, and time of change in nanoseconds, 0 where the file system knows none.
    [[nodiscard]] object_version version(object_id id) const { return state_->files.version(id); }
    void read(object_id id, std::uint64_t offset, mutable_bytes into) const {
      state_->files.read(id, offset, into);
    }
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept {
      state_->threads.read_many(requests, listener);
    }
    /// Reads in progress run to their ends.
    void cancel() const noexcept { state_->threads.cancel(); }
    void will_need(object_id, std::uint64_t, std::uint64_t) const noexcept {}
    /// Reads, and their bytes.
    [[nodiscard]] session_report report() const noexcept {
      return {.counters = state_->files.counters(), .counted = true};
    }

   private:
    friend arrow_files;
    struct state {
      state(std::shared_ptr<arrow::fs::FileSystem> where, std::span<const std::string> names,
            const arrow_files_options& options)
          : files(std::move(where), names, options.open_files),
            threads(session_view(files), names, options.threads) {}
      detail::arrow_session files;
      threaded_reads threads;  // ends first
    };
    session(shared<const std::vector<std::string>> names, std::shared_ptr<arrow::fs::FileSystem> where,
            const arrow_files_options& options)
        : names_(std::move(names)), state_(std::make_unique<state>(std::move(where), *names_, options)) {}

    shared<const std::vector<std::string>> names_;
    std::unique_ptr<state> state_;
  };

  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::string_view pattern,
              arrow_files_options options = {})
      : arrow_files(std::move(where), expanded(pattern), options, std::string(pattern)) {}
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              arrow_files_options options = {})
      : arrow_files(std::move(where), std::move(paths), options, {}) {}
  arrow_files(const std::shared_ptr<arrow::fs::FileSystem>& where, const arrow::fs::FileSelector& which,
              arrow_files_options options = {})
      : arrow_files(where, listed(where, which), options, which.base_dir) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return *names_; }
  [[nodiscard]] session connect() const { return {names_, file_system_, options_}; }
  /// See `sidecar_storage`.
  [[nodiscard]] arrow_files sidecars(sidecar which) const {
    std::vector<std::string> sidecar_names;
    for (const std::string& one : *names_) sidecar_names.push_back(which.of(one));
    return with_names(std::move(sidecar_names));
  }
  /// See `renaming_storage`.
  [[nodiscard]] arrow_files with_names(std::vector<std::string> names) const {
    return arrow_files(file_system_, std::move(names), options_);
  }
  [[nodiscard]] std::string describe() const {
    const std::string what = pattern_.empty() ? detail::text({names_->size(), " files"}) : pattern_;
    return detail::text({"arrow_files(", file_system_->type_name(), ", ", what, ")"});
  }

 private:
  arrow_files(std::shared_ptr<arrow::fs::FileSystem> where, std::vector<std::string> paths,
              const arrow_files_options& options, std::string pattern)
      : file_system_(std::move(where)), pattern_(std::move(pattern)), options_(options) {
    if (!file_system_) throw error(errc::argument, "arrow_files got no file system, but a null pointer");
    if (options_.threads == 0 || options_.threads > 1024 || options_.open_files == 0)
      throw error(errc::argument,
                  {"arrow_files reads with 1 to 1024 threads and keeps at least one file open, not ",
                   options_.threads, " and ", options_.open_files});
    names_.reset(new std::vector<std::string>(std::move(paths)));
  }
  [[nodiscard]] static std::vector<std::string> expanded(std::string_view pattern) {
    if (pattern.find('*') != std::string_view::npos)
      throw error(errc::argument, {"'", pattern,
                                   "' has a *, which arrow_files does not expand: list a folder with an "
                                   "arrow::fs::FileSelector, or write braces, as in train-{0000..0127}.tar"});
    return expand_braces(pattern);
  }
  [[nodiscard]] static std::vector<std::string> listed(const std::shared_ptr<arrow::fs::FileSystem>& where,
                                                       const arrow::fs::FileSelector& which) {
    if (!where) throw error(errc::argument, "arrow_files got no file system, but a null pointer");
    auto found = where->GetFileInfo(which);
    if (!found.ok()) detail::throw_arrow(found.status(), which.base_dir);
    std::vector<std::string> paths;
    for (const arrow::fs::FileInfo& one : *found)
      if (one.IsFile()) paths.push_back(one.path());
    std::sort(paths.begin(), paths.end());
    if (paths.empty())
      throw error(errc::missing, "the selector finds no file; say recursive = true if they are further down")
          .in_file(which.base_dir);
    return paths;
  }

  std::shared_ptr<arrow::fs::FileSystem> file_system_;
  shared<const std::vector<std::string>> names_;
  std::string pattern_;
  arrow_files_options options_;
};

static_assert(sidecar_storage<arrow_files> && background_session<arrow_files::session> &&
                  latent_session<arrow_files::session> && reports<arrow_files::session>,
              "arrow_files is a storage that reads in the background");

}  // namespace penstock::inline v0_1
