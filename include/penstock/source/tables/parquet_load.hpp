// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/parquet_files.hpp>

#include <limits>

namespace penstock::inline v0_1::detail {

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

/// Fields with the types that `widened(i)` gives them; none if it changes none.
template <class Widened>
[[nodiscard]] std::vector<std::shared_ptr<arrow::Field>> widened_fields(const arrow::DataType& file,
                                                                        const Widened& widened) {
  std::vector<std::shared_ptr<arrow::Field>> fields;
  bool changed = false;
  for (int i = 0; i < file.num_fields(); ++i) {
    auto made = widened(i);
    changed = changed || made != file.field(i)->type();
    fields.push_back(file.field(i)->WithType(std::move(made)));
  }
  if (!changed) fields.clear();
  return fields;
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
  const auto fields = widened_fields(*holder, [&](int i) {
    return widened_type(holder->field(i)->type(), of->children[static_cast<std::size_t>(i)], true);
  });
  if (fields.empty()) return file;
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

/// The type that a table has for a column of the file. `table` has the types of its leaves: of a struct one
/// for each field, in order.
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
  const auto fields =
      widened_fields(*file, [&](int i) { return widened_column(file->field(i)->type(), table); });
  return fields.empty() ? file : arrow::struct_(fields);
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

/// Some columns of a row group, read together.
struct parquet_piece {
  std::vector<std::size_t> leaves;  // in the file's order, in which Arrow returns them
  shared<const imported_batch> batch;
};

/// What a batch of a row group lies in.
struct parquet_group {
  parquet_memory pool;
  std::vector<parquet_piece> pieces;

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

/// Calls `take(batch)` for batches of a file that says something of a table, one row group after another.
/// `choose(schema, how)` returns the columns, and may set how they are read.
template <class Choose, class Take>
void read_parquet_batches(session_view session, object_id object, const Choose& choose, const Take& take) {
  const parquet_memory unused(0);
  read_parquet(session, object, unused, 0, [&](const std::shared_ptr<parquet_input>& input) {
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(input, parquet_pages(arrow::default_memory_pool(), true)));
    const auto metadata = builder.raw_reader()->metadata();
    parquet::ArrowReaderProperties how;
    const std::vector<int> columns = choose(*metadata->schema(), how);
    builder.properties(how);
    std::unique_ptr<parquet::arrow::FileReader> reader;
    ARROW_RETURN_NOT_OK(builder.Build(&reader));
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      std::shared_ptr<arrow::Table> table;
      ARROW_RETURN_NOT_OK(read_parquet_group(*reader, group, columns, table));
      arrow::TableBatchReader batches(*table);
      for (std::shared_ptr<arrow::RecordBatch> batch;;) {
        ARROW_RETURN_NOT_OK(batches.ReadNext(&batch));
        if (batch == nullptr) break;
        take(imported_rows(*batch));
      }
    }
    return arrow::Status::OK();
  });
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
  batch_limits limits;
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
  read_parquet(session, object, pool, way.limits.one, [&](const std::shared_ptr<parquet_input>& input) {
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
      piece.batch = imported_rows(*rows_read);
      return arrow::Status::OK();
    };
    const parquet_lengths lengths = lengths_of(*file.metadata, group, columns);
    if (lengths != parquet_lengths::large) {
      const arrow::Status done = read_with(way.properties);
      if (done.ok() || lengths == parquet_lengths::small || pool.refused() || input->failed()) return done;
    }
    return read_with(with_large_lengths(way.properties));
  });
  if (piece.batch->leaves.size() != piece.leaves.size())
    throw error(errc::format,
                {"Arrow returns ", piece.batch->leaves.size(), " columns of ", piece.leaves.size()});
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
                                                        const batch_limits& limits,
                                                        batch_cache::sharing* help) const {
  const object_id object = this->object(shard);
  const parquet_file& file = (*files)[object];
  auto made = std::make_unique<arrow_batch>();
  const shared<parquet_group> memory(new parquet_group(limits.one));
  reading_object(session, object, path(shard), [&] {
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
    if (std::ranges::any_of(wanted, [&](std::size_t leaf) { return leaf >= stored_leaves(); })) {
      buffer numbers(to_size(rows_of_group));
      std::ranges::fill(numbers.span(), std::byte{});
      made->owned.push_back(std::move(numbers));
    }
    const arrow_leaf unread = lacking_leaf(*made, {}, rows_of_group);
    made->root.length = rows_of_group;
    made->root.children.reserve(placed.size());
    for (const std::size_t leaf : placed) {
      const arrow_leaf* const found = memory->find(leaf);
      if (found != nullptr && leaf < stored_leaves()) {
        made->leaves.push_back(*found);
        if (file.widens) widen_leaf(*made, made->leaves.back(), *types[leaf]);
      } else if (std::ranges::find(wanted, leaf) == wanted.end()) {
        made->leaves.push_back(unread);
      } else if (leaf < stored_leaves()) {
        made->leaves.push_back(lacking_leaf(*made, (*all_leaves)[leaf], rows_of_group));
      } else {
        const std::size_t part = leaf - stored_leaves();
        if (found != nullptr) hive->check_equal(object, part, *found, rows_of_group);
        made->root.children.push_back(hive->column(object, part, rows_of_group, made->owned.front().data()));
        made->leaves.push_back({&made->root.children.back(), 0, {}});
      }
    }
  });
  made->kept_bytes = static_cast<std::uint64_t>(memory->pool.bytes_allocated());
  made->kept = memory;
  return made;
}

}  // namespace penstock::inline v0_1::detail
