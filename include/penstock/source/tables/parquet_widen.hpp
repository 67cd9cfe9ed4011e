// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/tables/parquet_widen.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/core/arrow_type.hpp>
#include <penstock/source/tables/table_facts.hpp>

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/array.h>
#include <arrow/compute/cast.h>
#include <arrow/compute/exec.h>
#include <arrow/extension_type.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/type.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace penstock::inline v0_1::detail
