// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/parquet_files.hpp>

#include <limits>

namespace penstock::inline v0_1::detail {

/// Calls `work.operator()<Type>()` with the type that a column has in a file; returns false for INT96.
template <class Work>
bool with_parquet_type(parquet::Type::type type, const Work& work) {
  return with_one_of<parquet::BooleanType, parquet::Int32Type, parquet::Int64Type, parquet::FloatType,
                     parquet::DoubleType, parquet::ByteArrayType, parquet::FLBAType>(
      [&]<class Type>() { return type == Type::type_num; }, work);
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
  const arrow_type& type = type_of_values(given);
  const bool is_text = type.is_bytes() || type.format.starts_with("w:");
  const bool has_text = column.physical_type() == parquet::Type::BYTE_ARRAY ||
                        column.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY;
  if (is_text != has_text) return false;
  if (column.max_repetition_level() != 0 || column.sort_order() == parquet::SortOrder::UNKNOWN) return false;
  // Bounds of files that name no order are by signed comparison.
  if (column.column_order().get_order() != parquet::ColumnOrder::TYPE_DEFINED_ORDER &&
      column.sort_order() != parquet::SortOrder::SIGNED)
    return false;
  if (type.format == "b" || type.format == "f" || type.format == "g" || type.format == "tdD") return true;
  if (is_text) return column.sort_order() == parquet::SortOrder::UNSIGNED;
  if (type.format.starts_with("ts") && column.logical_type()->is_timestamp()) {
    const auto unit = static_cast<const parquet::TimestampLogicalType&>(*column.logical_type()).time_unit();
    const char letter = unit == parquet::LogicalType::TimeUnit::MILLIS   ? 'm'
                        : unit == parquet::LogicalType::TimeUnit::MICROS ? 'u'
                                                                         : 'n';
    return type.format[2] == letter;
  }
  // Whole numbers: one letter.
  return type.number != arrow_number::none && type.format.size() == 1 && type.format != "e";
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

inline void parquet_files::keep(const column_filter& filter, session_view session,
                                const batch_limits& limits) {
  const std::size_t leaf = find_leaf(filter.column);
  if (leaf == all_leaves->size()) no_column(filter.column, " to choose rows by", *all_leaves);
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
    reading_object(session, object(shard), path(shard), [&] {
      within = ask_parquet([&] {
        // Of a value that several columns store, none of them says enough.
        if (columns.size() != 1)
          return parquet_reach::any(
              static_cast<std::uint64_t>(file.metadata->RowGroup(group[shard])->num_rows()));
        return parquet_reach::of(file.metadata, group[shard], columns.front(), type_of(leaf), bound, session,
                                 object(shard));
      });
    });
    mine.all = within.all;
    if (within.all || within.none()) return;
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
  std::vector<manifest::shard> left;
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
    const std::size_t at = left.size();
    left.push_back(std::move(one));
    versions[at] = versions[shard];
    objects[at] = objects[shard];
    group[at] = group[shard];
    rows_before[at] = rows_before[shard];
    rows[at].swap(found[shard].all ? rows[shard] : found[shard].rows);
  }
  versions.resize(left.size());
  objects.resize(left.size());
  group.resize(left.size());
  rows_before.resize(left.size());
  rows.resize(left.size());
  append(filters, {" | ", filter.spelled()});
  take(std::move(left));
}

}  // namespace penstock::inline v0_1::detail
