// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A folder that says what a column is: "city=Oslo".
struct hive_part {
  std::string column;
  std::optional<std::string> value;  // none: null

  friend bool operator==(const hive_part&, const hive_part&) = default;
};

/// A text in which characters may be written as "%20".
[[nodiscard]] std::string hive_text(std::string_view escaped);

/// The folders of a path that say so, from the front; what is behind a `%` is decoded. Throws errc::argument
/// if two are of one column.
///
/// Source: Apache Hive's partitions, as Spark and Arrow write them.
[[nodiscard]] std::vector<hive_part> hive_parts(std::string_view path);

/// Days since 1970 of a year, a month and a day, as "2024-03-31"; none for other texts.
[[nodiscard]] std::optional<std::int64_t> days_of_date(std::string_view text);

/// Columns that have one value per file, such as those that the folders of some paths are.
class hive_columns {
 public:
  hive_columns() = default;
  /// Whole numbers of 64 bits if all values are some, otherwise texts. Throws errc::format, naming the path,
  /// unless all have the same columns.
  explicit hive_columns(std::span<const std::string> paths);
  /// Columns of these types, "b", whole numbers and reals, decimals, "tdD" and "ts..." (as the numbers that
  /// they are), "u", "z" and "n", and their values as text, by file. Throws errc::format for a text that is
  /// no such value, and for other types.
  hive_columns(std::vector<arrow_type> types, std::vector<std::vector<std::optional<std::string>>> values);
  hive_columns(hive_columns&&) noexcept = default;
  hive_columns& operator=(hive_columns&&) noexcept = default;

  /// Gives a column the type that it has in files, too: whole numbers of 64 bits, double, bool, dates or
  /// texts. Throws errc::format for another type, and for a value that is none of it.
  void give_type(std::size_t i, const arrow_type& stored);
  /// Throws errc::format, with both values, if a row of a file's own column has another value than `i` has.
  void check_equal(std::size_t file, std::size_t i, const arrow_leaf& stored, std::uint64_t rows) const;

  [[nodiscard]] std::size_t size() const noexcept { return types_.size(); }
  /// The values' types.
  [[nodiscard]] const arrow_type& value_type(std::size_t i) const noexcept {
    return types_[i].dictionary.front();
  }
  /// The columns' types: numbers of the values.
  [[nodiscard]] const arrow_type& type(std::size_t i) const noexcept { return types_[i]; }
  /// A hash of a file's values.
  [[nodiscard]] std::uint64_t mark(std::size_t file) const noexcept;
  /// A column of `rows` rows that all have a file's value; `numbers` are zeros, one per row.
  [[nodiscard]] arrow_column column(std::size_t file, std::size_t i, std::uint64_t rows,
                                    const std::byte* numbers) const;

 private:
  void keep_values();

  std::vector<arrow_type> types_;
  std::vector<std::vector<std::optional<std::string>>> texts_;
  std::vector<arrow_column> values_;  // by file and column
  std::vector<buffer> memory_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/hive_path.ipp>
#endif
