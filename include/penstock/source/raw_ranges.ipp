// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/raw_ranges.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <limits>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE stored_rows find_raw_rows(std::uint64_t size, const extents& row, std::size_t item) {
  const std::uint64_t elements = row.elements();
  if (row.rank() == extents::max_rank || elements == 0 ||
      elements > std::numeric_limits<std::uint64_t>::max() / item)
    throw error(errc::argument, {"rows of shape ", to_string(row),
                                 " are no rows of a file; write the shape of one row, as in "
                                 "raw_ranges<float>(pattern, extents(128))"});
  const std::uint64_t row_bytes = elements * item;
  if (size % row_bytes != 0)
    throw error(errc::format, {"this raw file has ", size, " bytes, which are not rows of ", row_bytes,
                               ": either it is cut, or its rows are not of shape ", to_string(row)})
        .at_offset(size - size % row_bytes);
  return {row.prepend(size / row_bytes), 0, 0, false};
}

}  // namespace detail
}  // namespace penstock::inline v0_1
