// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <cstring>

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

inline std::uint64_t arrow_member_value::size() const {
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

inline void arrow_member_value::read_into(mutable_bytes into) const {
  const bytes_view found = finish();
  if (into.size() != found.size())
    throw error(errc::argument, {"a value of ", found.size(), " bytes was to be read into ", into.size()});
  if (!into.empty()) std::memcpy(into.data(), found.data(), into.size());
}

inline void arrow_member_value::check_codec(std::string_view) const {
  const arrow_cell found = cell();
  const arrow_type& type = found.type();
  const bool has_bytes = type.layout == arrow_layout::nothing || type.is_bytes() ||
                         (type.layout == arrow_layout::fixed && type.number == arrow_number::none);
  if (!has_bytes)
    throw error(errc::format,
                {"the column '", type.name, "' is of type ", type.text(),
                 ", which is no bytes: read it with arrow_value<T>, or arrays with arrow_array<T>"});
  if (found.is_null())
    throw error(errc::missing, {"the value of the column '", type.name,
                                "' is null: leave such samples out with bad_samples, or read it with "
                                "arrow_value<std::optional<bytes>>"});
}

}  // namespace penstock::inline v0_1::detail
