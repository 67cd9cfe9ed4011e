// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/rows/row_files.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/source/manifest.hpp>

#include <string>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void row_files::read(storage_facts where, session_view session, const extents* wanted,
                                     const row_finder& finder) {
  rows.resize(where.names.size());
  read_each(where, session, [&](std::size_t i, object_version version) {
    const auto object = static_cast<object_id>(i);
    rows[i] = finder.find(finder.format, session, object, version.size);
    const std::uint64_t hash = hash_of_file(session, object, version.size);
    return file_facts{rows[i].shape[0], rows[i].shape.elements() * finder.item, hash, hash};
  });
  row = wanted != nullptr ? *wanted : rows.front().shape.drop_front();
  row_bytes = finder.item * row.elements();
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const extents found = rows[i].shape.drop_front(); !(found == row))
      throw error(errc::shape, {"the rows of ", finder.what, " have shape ", to_string(found), ", and ",
                                to_string(row), wanted != nullptr ? " was asked for" : " in ",
                                wanted != nullptr ? "" : where.names.front()})
          .in_file(path(i))
          .at_offset(rows[i].described);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
