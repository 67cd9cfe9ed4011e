// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/arrow_column.hpp>
#include <penstock/core/arrow_type.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <vector>

namespace penstock::inline v0_1::detail {

/// Memory for values that cannot be shown where they lie.
class arrow_room {
 public:
  /// What was given before is given again.
  void begin() noexcept { used_ = 0; }
  [[nodiscard]] buffer& next() {
    if (used_ == rooms_.size()) rooms_.emplace_back();
    return rooms_[used_++];
  }

 private:
  std::vector<buffer> rooms_;
  std::size_t used_ = 0;
};

/// Throws errc::format unless the value is binary or a text.
[[nodiscard]] bytes_view arrow_bytes(const arrow_cell& cell);
/// Throws errc::limit for a list of more than a million values that take no space, which would cost memory
/// that nothing in the file stands for.
void check_arrow_count(const arrow_slice& list);
/// The bytes of a list's numbers; `of` is the list's type. Throws errc::format if they are not of this type,
/// errc::missing if one of them is null.
[[nodiscard]] bytes_view arrow_list_bytes(const arrow_slice& list, const arrow_type& of, arrow_number wanted,
                                          std::size_t width);
/// A list's truth values, a byte each, in `room`. Throws as above.
[[nodiscard]] std::span<const bool> arrow_list_bools(const arrow_slice& list, const arrow_type& of,
                                                     buffer& room);
/// The place of a field; the number of fields if the struct lacks it. Throws errc::format if it is no struct.
[[nodiscard]] std::size_t find_arrow_field(const arrow_cell& cell, std::string_view name);
/// Adds to an error which value of a list, or which field of a struct, it is about.
[[gnu::cold]] void name_arrow_value(error& e, const arrow_type& list, std::uint64_t i);
[[noreturn, gnu::cold]] void no_arrow_field(const arrow_type& type, std::string_view name);
/// The values, or a copy of them in `scratch` if they are not aligned.
[[nodiscard]] const std::byte* aligned_arrow_values(bytes_view values, std::size_t alignment,
                                                    buffer& scratch);

/// An array in the values of lists.
struct arrow_array_place {
  bytes_view values;
  extents shape;
};
/// Throws errc::missing for a null, errc::shape for lists that make no array, and what `arrow_list_bytes`
/// throws.
[[nodiscard]] arrow_array_place find_arrow_array(const arrow_cell& cell, arrow_number wanted,
                                                 std::size_t width);
/// The numbers of a list of fixed length, unless it or one of them could be null or it is empty; no bytes for
/// any other.
[[nodiscard]] inline bytes_view flat_arrow_list(const arrow_cell& cell, arrow_number wanted,
                                                std::size_t width) {
  if (cell.type().layout != arrow_layout::fixed_list || cell.is_null()) return {};
  const arrow_slice list = cell.list();
  const arrow_column& values = *list.column;
  if (values.type->number != wanted || values.validity != nullptr || !values.type->dictionary.empty())
    return {};
  return {values.values + to_size(values.offset + list.first) * width, to_size(list.count) * width};
}

[[noreturn, gnu::cold]] void null_arrow_value(const arrow_type& type);
[[noreturn, gnu::cold]] void arrow_out_of_range(const arrow_type& type);
[[noreturn, gnu::cold]] void other_arrow_length(const arrow_type& type, std::uint64_t count,
                                                std::uint64_t wanted);
[[noreturn, gnu::cold]] void no_arrow_column(std::string_view codec);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/arrow_values.ipp>
#endif
