// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/known_files.hpp>

#include <penstock/source/files/hash_bytes.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE void known_files::compare_version(session_view session, std::size_t shard) const {
  if (!session.has_version(object(shard), versions[shard]))
    throw error(errc::io, "the file was changed after the dataset was opened; open it again")
        .in_file(path(shard));
}

PENSTOCK_INLINE void known_files::compare(session_view session, std::size_t shard) const {
  compare_version(session, shard);
  const object_id id = object(shard);
  if (id >= ends.size() || ends[id] == 0 || session.tagged(id)) return;
  const bool same = hash_of_file(session, id, versions[shard].size) == ends[id];
  session.confirm(id);
  if (!same)
    throw error(
        errc::io,
        "the file was replaced after the dataset was opened, by another one of the same size and time; "
        "open it again")
        .in_file(path(shard))
        .recurring();
}

PENSTOCK_INLINE void known_files::learn_ends(object_id id, std::uint64_t hash) {
  if (ends.size() <= id) ends.resize(std::size_t{id} + 1);
  ends[id] = hash;
}

PENSTOCK_INLINE void known_files::no_such_sample(std::uint64_t index) const {
  throw error(errc::argument, {"there is no sample ", index, ": the dataset has ", shards.samples()});
}

PENSTOCK_INLINE std::uint64_t hash_of_file(session_view session, object_id object, std::uint64_t size) {
  const std::uint64_t part = std::min<std::uint64_t>(size, 4_KiB);
  object_bytes bytes = session.range(object, 0, part);
  const std::uint64_t first = hash_bytes(size, bytes);
  bytes = session.range(object, size - part, part, std::move(bytes));
  return hash_bytes(first, bytes);
}
PENSTOCK_INLINE std::uint64_t ends_of(session_view session, object_id object, std::uint64_t size) {
  return session.tagged(object) ? 0 : hash_of_file(session, object, size);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
