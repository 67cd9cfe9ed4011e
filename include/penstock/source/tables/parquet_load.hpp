// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/files/shared_loop.hpp>
#include <penstock/source/tables/arrow_batch.hpp>
#include <penstock/source/tables/arrow_import.hpp>
#include <penstock/source/tables/arrow_widen.hpp>
#include <penstock/source/tables/batch_cache.hpp>
#include <penstock/source/tables/parquet_checks.hpp>
#include <penstock/source/tables/parquet_files.hpp>
#include <penstock/source/tables/parquet_input.hpp>
#include <penstock/source/tables/parquet_widen.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

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

}  // namespace penstock::inline v0_1::detail
