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
  std::vector<manifest::shard> entries;
  for (std::size_t i = 0; i < where.names.size(); ++i) {
    const auto object = static_cast<object_id>(i);
    const std::string& path = where.names[i];
    try {
      const object_version version = session.version(object);
      const std::uint64_t rows =
          add(finder.find(finder.format, session, object, version.size), where, wanted, finder);
      const std::uint64_t hash = hash_of_file(session, object, version.size);
      entries.push_back({path, version.size, rows, rows * row_bytes, hash});
      learn_ends(object, hash);
      versions.push_back(version);
      session.confirm(object);
    } catch (error& e) {
      session.confirm(object);
      e.in_file(path);
      throw;
    }
  }
  shards = manifest(std::move(entries));
}

PENSTOCK_INLINE std::uint64_t row_files::add(const stored_rows& rows, storage_facts where,
                                             const extents* wanted, const row_finder& finder) {
  const extents found = rows.shape.drop_front();
  if (begins.empty()) row = wanted != nullptr ? *wanted : found;
  if (!(found == row))
    throw error(errc::shape,
                {"the rows of ", finder.what, " have shape ", to_string(found), ", and ", to_string(row),
                 wanted != nullptr ? " was asked for" : " in ", wanted != nullptr ? "" : where.names.front()})
        .at_offset(rows.described);
  row_bytes = finder.item * row.elements();
  begins.push_back(rows.begin);
  swapped.push_back(rows.swapped);
  return rows.shape[0];
}

}  // namespace detail
}  // namespace penstock::inline v0_1
