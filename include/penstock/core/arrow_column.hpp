// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/detail/index_range.hpp>
#include <penstock/core/to_size.hpp>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Source: Arrow, "Arrow columnar format", "Physical memory layout".
namespace penstock::inline v0_1 {

/// A column of Arrow data in memory: pointers to its buffers, which others own, in this machine's byte order.
///
/// Rows are counted from `offset`, as in the C data interface. What a row says about other buffers (offsets,
/// numbers of dictionary values) is checked when the row is read.
struct arrow_column {
  const arrow_type* type = nullptr;
  std::uint64_t length = 0;             ///< rows
  std::uint64_t offset = 0;             ///< of row 0 in the buffers
  const std::byte* validity = nullptr;  ///< bits; null: no value is null
  const std::byte* values = nullptr;    ///< of fixed width, bits, views, or bytes behind offsets
  const std::byte* offsets = nullptr;   ///< of bytes and lists
  const std::byte* sizes = nullptr;     ///< of list views
  std::uint64_t bytes = 0;              ///< of `values`, if there are offsets into them
  std::vector<arrow_column> children;
  std::vector<const arrow_column*> dictionary;  ///< its parts, one after another
  std::vector<bytes_view> buffers;              ///< that views refer to

  /// Whether the value of a row is null, by this column alone.
  [[nodiscard]] bool null_at(std::uint64_t row) const noexcept {
    return validity != nullptr && !bit(validity, offset + row);
  }
  [[nodiscard]] static bool bit(const std::byte* bits, std::uint64_t i) noexcept {
    return (std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1u) != 0;
  }
};

class arrow_cell;

namespace detail {

/// How a value is read as `T`; see codec/arrow_value.hpp.
template <class T>
struct arrow_form;

}  // namespace detail

/// Some values of a column one after another: those of a list. `for (const arrow_cell one : cell.list())`.
struct arrow_slice {
  using iterator = detail::index_iterator<arrow_slice>;

  const arrow_column* column = nullptr;
  std::uint64_t first = 0, count = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return count; }
  [[nodiscard]] bool empty() const noexcept { return count == 0; }
  /// A value; `i` is below `size()`.
  [[nodiscard]] arrow_cell operator[](std::uint64_t i) const;
  [[nodiscard]] iterator begin() const noexcept;
  [[nodiscard]] iterator end() const noexcept;
};

/// One value of a column. Numbers of dictionary values are followed to the values. Valid as long as the
/// column.
class arrow_cell {
 public:
  /// The value of a row, which must be below `column.length`. Throws errc::format, naming the column, if the
  /// row has the number of no dictionary value.
  arrow_cell(const arrow_column& column, std::uint64_t row)
      : column_(&column), row_(column.offset + row), null_(column.null_at(row)) {
    if (!column.type->dictionary.empty()) [[unlikely]]
      follow_dictionary();
  }
  /// The value of a column where a struct above it is null.
  [[nodiscard]] static arrow_cell null_of(const arrow_column& column) noexcept { return arrow_cell(column); }

  [[nodiscard]] const arrow_type& type() const noexcept { return *column_->type; }
  [[nodiscard]] bool is_null() const noexcept {
    return null_ || column_->type->layout == arrow_layout::nothing;
  }

  /// The value as a number. Requires a value of fixed width that has `sizeof(T)` bytes.
  template <class T>
  [[nodiscard]] T number() const noexcept {
    T value;
    std::memcpy(&value, column_->values + detail::to_size(row_) * sizeof(T), sizeof(T));
    return value;
  }
  /// Requires the layout `bits`.
  [[nodiscard]] bool bit() const noexcept { return arrow_column::bit(column_->values, row_); }
  /// The bytes of a binary value or a text, or of a value of fixed width. Throws errc::format for any other
  /// layout, and for offsets that lead out of the buffer.
  [[nodiscard]] bytes_view bytes() const {
    const arrow_layout layout = column_->type->layout;
    if (layout == arrow_layout::bytes32) [[likely]]
      return between(offset<std::uint32_t>(0), offset<std::uint32_t>(1));
    if (layout == arrow_layout::bytes64) return between(offset<std::uint64_t>(0), offset<std::uint64_t>(1));
    if (layout == arrow_layout::fixed) {
      const std::size_t width = detail::to_size(column_->type->width);
      return {column_->values + detail::to_size(row_) * width, width};
    }
    return viewed();
  }
  /// The values of a list, and the entries of a map, which are structs of a key and a value; none if it is
  /// null. Throws errc::format for any other layout, and for offsets that lead out of the child.
  [[nodiscard]] arrow_slice list() const {
    if (null_) [[unlikely]]
      return {};
    if (column_->type->layout != arrow_layout::fixed_list) return varying_list();
    const std::uint64_t count = column_->type->width;
    std::uint64_t first = 0;
    if (__builtin_mul_overflow(row_, count, &first)) [[unlikely]]
      bad_offsets(row_, row_, column_->children.front().length);
    return within_child(first, count);
  }
  /// A field of a struct; null if the struct is. Throws errc::missing if it has none of this name,
  /// errc::format for any other layout.
  [[nodiscard]] arrow_cell field(std::string_view name) const;
  /// The same by its place in `type().children`.
  [[nodiscard]] arrow_cell field(std::size_t i) const;
  /// The value as `T`, whatever `arrow_value<T>` reads but spans: `cell.as<std::string_view>()`,
  /// `cell.as<std::optional<double>>()`. Needs penstock/codec/arrow_value.hpp.
  template <class T>
  [[nodiscard]] typename detail::arrow_form<T>::type as() const;

 private:
  explicit arrow_cell(const arrow_column& column) noexcept : column_(&column), null_(true) {}

  template <class Offset>
  [[nodiscard]] std::uint64_t offset(std::uint64_t behind) const noexcept {
    return number_at<Offset>(column_->offsets, behind);
  }
  template <class Number>
  [[nodiscard]] std::uint64_t number_at(const std::byte* numbers, std::uint64_t behind = 0) const noexcept {
    Number value;
    std::memcpy(&value, numbers + detail::to_size(row_ + behind) * sizeof(Number), sizeof(Number));
    return value;
  }
  [[nodiscard]] bytes_view between(std::uint64_t begin, std::uint64_t end) const {
    if (begin > end || end > column_->bytes) [[unlikely]]
      bad_offsets(begin, end, column_->bytes);
    return {column_->values + begin, detail::to_size(end - begin)};
  }
  [[nodiscard]] arrow_slice within_child(std::uint64_t first, std::uint64_t count) const {
    const arrow_column& child = column_->children.front();
    if (first > child.length || count > child.length - first) [[unlikely]]
      bad_offsets(first, first + count, child.length);
    return {&child, first, count};
  }
  void follow_dictionary();
  void check_struct() const;
  [[nodiscard]] bytes_view viewed() const;
  [[nodiscard]] arrow_slice varying_list() const;
  [[noreturn, gnu::cold]] void bad_offsets(std::uint64_t begin, std::uint64_t end, std::uint64_t size) const;

  const arrow_column* column_;
  std::uint64_t row_ = 0;  // in the buffers
  bool null_;
};

inline arrow_cell arrow_slice::operator[](std::uint64_t i) const { return {*column, first + i}; }
inline arrow_slice::iterator arrow_slice::begin() const noexcept { return {*this, 0}; }
inline arrow_slice::iterator arrow_slice::end() const noexcept { return {*this, detail::to_size(count)}; }

namespace detail {

/// A whole number of any of Arrow's types, in two's complement.
struct arrow_whole {
  std::uint64_t bits = 0;
  bool negative = false;
};

/// Throws errc::format: a value is of this type, and `wanted` was asked for.
[[noreturn, gnu::cold]] void other_arrow_type(const arrow_type& type, std::string_view wanted);

/// Throws errc::format if the value is none.
[[nodiscard]] arrow_whole whole_arrow_number(const arrow_cell& cell);

/// A floating-point number. Throws errc::format if the value is none, or has more than `maximum` bytes.
[[nodiscard]] double real_arrow_number(const arrow_cell& cell, std::size_t maximum);

/// The column of a leaf: what is left of a schema if structs are replaced by their fields.
struct arrow_leaf {
  struct above {
    const arrow_column* column;
    std::uint64_t add;
  };
  const arrow_column* column = nullptr;
  std::uint64_t add = 0;       ///< the leaf's row is the batch's row and this
  std::vector<above> structs;  ///< that it is in, as far as they may be null
  /// Of values of fixed width, and lists of fixed length of such: where the first row is, the bytes of each,
  /// and how many rows there are; of a dictionary column those of its numbers. No rows for other columns.
  const std::byte* first = nullptr;
  std::uint64_t width = 0, rows = 0;
  /// The type of the numbers, of a column of nothing else: no lists, no nulls, no dictionary, in no struct
  /// that may be null; and that of the numbers in lists of fixed length of a column of nothing else.
  arrow_number plain = arrow_number::none, listed = arrow_number::none;

  [[nodiscard]] arrow_cell at(std::uint64_t row) const {
    for (const above& one : structs)
      if (one.column->null_at(row + one.add)) return arrow_cell::null_of(*column);
    return {*column, row + add};
  }
};

/// A name as it stands in an exact path.
[[nodiscard]] std::string arrow_path_part(std::string_view name);

/// The leaves of a schema, by path; if `exact`, with every name that has a dot or a backtick in backticks, as
/// Spark has it: equal only for columns of the same path.
[[nodiscard]] std::vector<std::string> arrow_leaf_paths(const arrow_type& root, bool exact = true);

/// The leaves of a schema, by path: "label", "image.bytes". Where a column called "a.b" stands beside the
/// field b of a struct a, it is "`a.b`". Two columns of one struct with one name have it both.
[[nodiscard]] std::vector<std::string> arrow_leaf_names(const arrow_type& root);

/// The place of a leaf among those that a dataset shows, or their number. Throws errc::argument if two have
/// this name.
[[nodiscard]] std::size_t find_arrow_leaf(std::span<const std::string> leaves, std::string_view name);

/// The types of the leaves, in the order of their names.
[[nodiscard]] std::vector<const arrow_type*> arrow_leaf_types(const arrow_type& root);

/// The leaves of a batch, in the order of their names.
[[nodiscard]] std::vector<arrow_leaf> arrow_leaves(const arrow_column& root);

/// A leaf of the same rows with another column.
[[nodiscard]] arrow_leaf arrow_leaf_of(const arrow_column& column, const arrow_leaf& like);

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/arrow_column.ipp>
#endif
