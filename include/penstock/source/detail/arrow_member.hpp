// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>

#include <cstdint>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// A value of a row, as bytes and as what it is. Valid during the call that delivers its sample.
class arrow_member_value {
 public:
  using unfinished = void;

  /// Not copied from a cell, which costs as much as reading a number.
  arrow_member_value(const arrow_leaf& leaf, std::uint64_t row) : cell_(leaf.at(row)) {}

  /// The bytes of a binary value, a text or a value of fixed width; 0 for null and all others.
  [[nodiscard]] std::uint64_t size() const;
  void read_into(mutable_bytes into) const;
  [[nodiscard]] bytes_view finish() const { return cell_.is_null() ? bytes_view() : cell_.bytes(); }
  [[nodiscard]] const arrow_cell& cell() const noexcept { return cell_; }
  /// Throws if a codec of this name cannot read the value: errc::missing for null, errc::format for a column
  /// that has no bytes for it.
  void check_codec(std::string_view codec) const {
    // These look for themselves.
    if (codec != "arrow_value" && codec != "arrow_array") check_bytes();
  }

 private:
  void check_bytes() const;

  arrow_cell cell_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/detail/arrow_member.ipp>
#endif
