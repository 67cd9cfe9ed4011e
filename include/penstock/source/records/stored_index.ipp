// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/records/stored_index.hpp>

#include <penstock/core/error.hpp>
#include <penstock/source/records/index_file.hpp>
#include <penstock/source/records/shard_index.hpp>

#include <string>

namespace penstock::inline v0_1 {
namespace detail {

// Whether an index of Penstock's belongs to the shard; writes the shard's version into it.
PENSTOCK_INLINE bool adopt(buffer& bytes, session_view session, object_id id, object_version shard,
                           const shard_kind& kind, scan_pace pace, std::uint64_t extension_limit,
                           bool skip_apple_double, std::string& why) {
  const auto tables = shard_index::over(bytes.view());
  if (!tables || (tables->header().bytewise != 0) != kind.bytewise) {
    why = to_text(index_state::damaged);
    return false;
  }
  index_header header = tables->header();
  if (!header.fits(skip_apple_double)) {
    why = to_text(index_state::stale);
    return false;
  }
  const bool same = header.shard_size == shard.size && header.shard_stamp == shard.stamp && shard.stamp != 0;
  if (!same &&
      (header.shard_size != shard.size || !kind.agrees(session, id, *tables, pace, extension_limit))) {
    why = to_text(index_state::stale);
    return false;
  }
  header.shard_stamp = shard.stamp;
  header.store(bytes.data());
  return true;
}

PENSTOCK_INLINE std::optional<buffer> index_in_store(session_view session, object_id id,
                                                     sidecar_objects& near, const shard_kind& kind,
                                                     scan_pace pace, std::uint64_t extension_limit,
                                                     std::string& why, bool skip_apple_double) {
  const object_version shard = session.version(id);
  const std::uint64_t maximum = max_index_bytes(shard.size);
  try {
    if (auto own = near.read(id, own_index, maximum, &why);
        own && adopt(*own, session, id, shard, kind, pace, extension_limit, skip_apple_double, why))
      return own;
    if (kind.foreign_in_store != nullptr)
      return kind.foreign_in_store(session, id, shard, near, extension_limit, pace, skip_apple_double);
  } catch (const error& e) {
    // What is wrong with the shard itself is said by the scan.
    if (!depends_on_bytes(e.code())) throw;
  }
  return std::nullopt;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
