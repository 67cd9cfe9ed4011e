// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/index_shards.hpp>

#include <penstock/source/files/parallel.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/records/shard_set.hpp>
#include <penstock/source/tar/tar_shards.hpp>

#include <mutex>

namespace penstock::inline v0_1 {
namespace detail {

// The name of a shard's index; the query of a URL, which names show as `?...`, is no part of it.
PENSTOCK_INLINE std::string index_name(std::string_view shard) {
  if (shard.ends_with("?...")) shard.remove_suffix(4);
  return own_index.of(shard);
}

// Whether the index beside the shard was made for it as it is.
PENSTOCK_INLINE bool index_is_there(object_version there, object_id id, sidecar_objects& near) {
  const auto own = near.read(id, own_index, max_index_bytes(there.size));
  const auto tables = own ? shard_index::over(own->view()) : std::nullopt;
  return tables && there.stamp != 0 &&
         object_version{tables->header().shard_size, tables->header().shard_stamp} == there;
}

PENSTOCK_INLINE indexed_shards index_all(storage_facts where, session_view session, sidecar_objects& near,
                                         bool latent, const index_shards_options& options, index_sink sink) {
  known_shards::check_any(where.names.size());
  if (where.local)
    throw error(errc::argument,
                "index_shards is for shards in a store; webdataset itself writes the indexes of local files");
  const known_shards set(
      {{.index = options.index, .extension_limit = options.extension_limit, .scan_gap = options.scan_gap},
       &tar_shards()},
      latent, &shards_in_store);
  const std::size_t threads = options.threads == 0 && latent ? 32 : options.threads;
  indexed_shards done;
  std::mutex one_at_a_time;
  for_each_in_parallel(where.names.size(), threads, [&](std::size_t i) {
    const auto id = static_cast<object_id>(i);
    const object_version there = session.version(id);
    shared<const buffer> made;
    if (shard_damage none; !index_is_there(there, id, near))
      made = set.build(session, near, i, where.names[i], index_state::missing, none);
    const std::scoped_lock held(one_at_a_time);
    if (made != nullptr) {
      sink.put(sink.self, i, index_name(where.names[i]), made->view());
      ++done.made;
    } else {
      ++done.there;
    }
  });
  return done;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
