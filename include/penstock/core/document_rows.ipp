// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/document_rows.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void window_documents::check(const extents& windows, std::uint64_t targets) {
  if (windows.rank() != 2 || windows[1] <= targets)
    throw error(errc::argument, {"document_rows: an array of shape ", to_string(windows),
                                 " is not one of windows with ", targets, " targets"});
  constexpr std::uint64_t most = 0x7fffffff;  // offsets are of 32 bits
  if (windows[1] > most || windows[0] > most / windows[1])
    throw error(errc::argument,
                {"document_rows: windows of shape ", to_string(windows), " have more places than 2^31 - 1"});
}

PENSTOCK_INLINE void window_documents::refuse(const extents& tokens) const {
  throw error(errc::argument, {"labels: the documents are those of windows of shape ", to_string(windows_),
                               ", not ", to_string(tokens), "; give it the same tokens"});
}

PENSTOCK_INLINE window_documents document_rows_of(const tensor_view<const std::int32_t>& ids,
                                                  std::uint64_t targets) {
  const std::size_t span = ids.rank() == 2 ? detail::to_size(ids.shape()[1]) : 0;
  return window_documents(ids.shape(), targets, [&](std::size_t row, std::size_t i) {
    const std::int32_t* const at = ids.data() + row * span + i;
    return i + 1 != span && at[0] != at[1];
  });
}

}  // namespace penstock::inline v0_1
