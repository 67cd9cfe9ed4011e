// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// What files without numbers call a field, one or the other: a column, a field of a struct, or the
/// "element", "key" or "value" of a list or a map.
struct stored_name {
  std::vector<std::string> names;
  int number = -1;
  std::vector<stored_name> fields = {};
};

/// What a table says of its Parquet files, at one version.
struct table_facts {
  using texts = std::vector<std::string>;
  arrow_type schema;             // the columns that files have, as the children of a struct
  std::vector<texts> stored_as;  // by column: what files call it, one or the other; none: as the table does
  std::vector<arrow_type> stored_types;  // by column: with the fields' names in files; empty: as the table's
  // By column: its number in files, if files have some; may be empty. Without stored types, those of what it
  // consists of come behind it, depth first.
  std::vector<int> field_ids;
  std::optional<std::vector<stored_name>> names;  // of what has a number, in files without numbers
  std::vector<arrow_type> part_types;  // columns of one value per file, of types that `hive_columns` takes
  std::vector<std::vector<std::optional<std::string>>> part_values;  // by file and column; none: null
  std::vector<std::vector<std::uint64_t>>
      deleted;                   // by file: the rows that are not there any more, ascending
  std::vector<texts> must_have;  // by file: columns that are not null where the file has none; may be empty
  std::string says;              // "delta('sales', version 3)"
  std::uint64_t mark = 0;        // of the version
};

/// How values of a file's column become those of a table's.
enum class table_fit : std::uint8_t {
  none,         ///< they do not
  as_they_are,  ///< whoever reads them takes either type
  converted     ///< into others that are exactly the same: see `as_in_table`
};

/// The digits of a decimal, "d:10,2" or "d:10,2,256": all of them, and those behind the point.
struct decimal_digits {
  int all = 0, behind = 0;
};

/// How many numbers a column has: its own, and those of what it consists of.
[[nodiscard]] std::size_t numbers_of(const arrow_type& column) noexcept;

/// Gives the columns of a file, and the fields of its structs, the names that they have in the table. `ids`
/// are the file's own, in the order of `field_ids`, -1 for none.
void name_as_in_table(const table_facts& table, arrow_type& file, std::span<const int> ids);

[[nodiscard]] std::optional<decimal_digits> digits_of_decimal(const arrow_type& type) noexcept;

/// Values of a type, as a file has it, in a column of a table. As they are: all numbers of a kind, all texts
/// and bytes, dictionaries of them, lists of any length as those of a fixed one, decimals of the same scale,
/// and a column of the type null. Converted: whole numbers of up to 32 bits
/// into double, dates into timestamps without a zone, decimals and whole numbers into decimals that have at
/// least as many digits in front of the point and behind it; and in lists, maps and structs in them, whose
/// values may be read in place, numbers into wider ones of their kind.
[[nodiscard]] table_fit fit_in_table(const arrow_type& file, const arrow_type& table) noexcept;

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/table_facts.ipp>
#endif
