// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>

#include <cstdint>
#include <string_view>

namespace penstock::inline v0_1::detail {

/// A value of a row, as bytes and as what it is. Valid during the call that delivers its sample.
class arrow_member_value {
 public:
  using unfinished = void;

  /// Not made of a cell, which costs more than reading a number does.
  arrow_member_value(const arrow_leaf& leaf, std::uint64_t row) noexcept : leaf_(&leaf), row_(row) {}

  /// The bytes of a binary value, a text or a value of fixed width; 0 for null and all others.
  [[nodiscard]] std::uint64_t size() const;
  void read_into(mutable_bytes into) const;
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
  void check_codec(std::string_view codec) const;

 private:
  const arrow_leaf* leaf_;
  std::uint64_t row_;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tables/arrow_member.ipp>
#endif
