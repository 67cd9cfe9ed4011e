// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <cstring>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A value of a row, as bytes and as what it is. Valid during the call that delivers its sample.
class arrow_member_value {
 public:
  using unfinished = void;

  /// Not made of a cell, which costs more than reading a number does.
  arrow_member_value(const arrow_leaf& leaf, std::uint64_t row) noexcept : leaf_(&leaf), row_(row) {}

  /// The bytes of a binary value, a text or a value of fixed width; 0 for null and all others.
  [[nodiscard]] std::uint64_t size() const {
    const arrow_cell found = cell();
    switch (found.type().layout) {
      case arrow_layout::bytes32:
      case arrow_layout::bytes64:
      case arrow_layout::views:
      case arrow_layout::fixed:
        return found.is_null() ? 0 : found.bytes().size();
      default:
        return 0;
    }
  }
  void read_into(mutable_bytes into) const {
    const bytes_view found = finish();
    if (into.size() != found.size())
      throw error(errc::argument, {"a value of ", found.size(), " bytes was to be read into ", into.size()});
    if (!into.empty()) std::memcpy(into.data(), found.data(), into.size());
  }
  [[nodiscard]] bytes_view finish() const {
    const arrow_cell found = cell();
    return found.is_null() ? bytes_view() : found.bytes();
  }
  [[nodiscard]] arrow_cell cell() const { return leaf_->at(row_); }
  /// Where the value is, if the column is nothing but numbers of this type; otherwise null.
  [[nodiscard]] const std::byte* plain(arrow_number number) const noexcept {
    return leaf_->plain == number ? leaf_->first + to_size(row_ * leaf_->width) : nullptr;
  }
  /// The numbers of the list, if the column is nothing but lists of fixed length of this type; otherwise
  /// empty.
  [[nodiscard]] bytes_view listed(arrow_number number) const noexcept {
    if (leaf_->listed != number) return {};
    return {leaf_->first + to_size(row_ * leaf_->width), to_size(leaf_->width)};
  }
  /// For a codec that reads bytes, whatever its name. Throws errc::missing for null, errc::format for a
  /// column that has no bytes for it.
  void check_codec(std::string_view) const;

 private:
  const arrow_leaf* leaf_;
  std::uint64_t row_;
};

/// The columns of a batch of rows, and what they lie in if it is not a mapping.
struct arrow_batch {
  arrow_column root;
  std::vector<arrow_leaf> leaves;
  std::vector<buffer> owned;
  std::vector<std::unique_ptr<arrow_column>> widened;  // of leaves that the file has otherwise, or not at all
  std::vector<std::unique_ptr<arrow_type>> types;      // of those that it has not
  shared<const void> kept;                             // what another library allocated
  std::uint64_t kept_bytes = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t all = kept_bytes;
    for (const buffer& one : owned) all += one.capacity();
    return all;
  }
};

/// Whether values of a file's type are read like those of `wanted`, which `common_arrow_type` made of it, as
/// they lie there: texts in any encoding, lists of any offsets, and null.
[[nodiscard]] bool reads_unchanged(const arrow_type& file, const arrow_type& wanted) noexcept;

/// A column with its values as those of `wanted`, which `common_arrow_type` made of its type and which must
/// live as long as the column. Buffers that are the same are shared; others are made in `owned`. Throws
/// errc::format for a time that does not fit the finer unit.
[[nodiscard]] arrow_column widened(const arrow_column& column, const arrow_type& wanted,
                                   std::vector<buffer>& owned);

/// Replaces a leaf of a batch by its values as those of `wanted`, if they are others.
void widen_leaf(arrow_batch& batch, arrow_leaf& leaf, const arrow_type& wanted);

/// The leaf of a column, by its path, that a file lacks: null in all rows.
[[nodiscard]] arrow_leaf lacking_leaf(arrow_batch& batch, std::string_view path, std::uint64_t rows);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/arrow_batch.ipp>
#endif
