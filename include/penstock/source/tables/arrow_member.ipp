// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/arrow_member.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cstring>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::uint64_t arrow_member_value::size() const {
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

PENSTOCK_INLINE void arrow_member_value::read_into(mutable_bytes into) const {
  const bytes_view found = finish();
  if (into.size() != found.size())
    throw error(errc::argument, {"a value of ", found.size(), " bytes was to be read into ", into.size()});
  if (!into.empty()) std::memcpy(into.data(), found.data(), into.size());
}

PENSTOCK_INLINE void arrow_member_value::check_codec(std::string_view) const {
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
