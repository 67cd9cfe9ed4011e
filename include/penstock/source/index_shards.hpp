// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {

/// Options of `index_shards`; those of the same names in `webdataset_options` say more.
struct index_shards_options {
  std::size_t threads = 0;
  std::uint64_t extension_limit = 1_MiB;
  std::uint64_t scan_gap = 256_KiB;
  /// What an index that is missing is made from: `dali_index`, DALI's in the store; with
  /// `index_policy::cache.or_else(dali_index)` the shard's headers where there is none of DALI's.
  index_policy index = index_policy::cache;
};

/// What `index_shards` found and did.
struct indexed_shards {
  std::uint64_t made = 0;   ///< given to the function, or written
  std::uint64_t there = 0;  ///< already in the store, and made for the shard as it is there
  friend bool operator==(const indexed_shards&, const indexed_shards&) = default;
};

namespace detail {

/// Where new indexes go.
struct index_sink {
  void* self;
  void (*put)(void* self, std::size_t number, const std::string& name, bytes_view index);
};
[[nodiscard]] indexed_shards index_all(storage_facts where, session_view session, sidecar_objects& near,
                                       bool latent, const index_shards_options& options, index_sink sink);

}  // namespace detail

/// Makes the indexes that `webdataset` looks for beside shards in a store: once, so that no later start has
/// to read the shards' headers.
///
///     const memory_files shards;
///     const auto put = [](std::size_t, const std::string& name, bytes_view index) {
///       std::ofstream(name, std::ios::binary) << text_of(index);  // or upload it under this name
///     };
///     if (!shards.names().empty()) index_shards(shards, put);
///
/// In: a storage, and a function that gets the number of a shard, the name of its index (a URL comes without
/// its query) and the index's bytes, and puts them beside the shard. Or an `object_writer` of that store,
/// which does just that:
/// `index_shards(s3("bucket/train-{0000..0127}.tar"), s3_writer())`.
/// Indexes that are there and have the shard's size and stamp are left alone; those that were made for a copy
/// elsewhere are made to fit, and given again.
/// The function is called by one thread at a time, in any order, as soon as an index is made. If it throws,
/// no further index is begun, and its exception is thrown.
/// Cost and errors: those of making a `webdataset` without an index; nothing is written to the local folder.
template <storage Storage, class Put>
  requires std::invocable<Put&, std::size_t, const std::string&, bytes_view>
indexed_shards index_shards(const Storage& where, Put&& put, index_shards_options options = {}) {
  using put_type = std::remove_reference_t<Put>;
  detail::sidecar_objects near(where);
  auto session = where.connect();
  return detail::index_all(facts_of(where), session, near,
                           session_traits_of<typename Storage::session>().latency && !is_local(where),
                           options,
                           {const_cast<std::remove_const_t<put_type>*>(&put),
                            [](void* self, std::size_t number, const std::string& name, bytes_view index) {
                              (*static_cast<put_type*>(self))(number, name, index);
                            }});
}
template <storage Storage, class Writer>
  requires object_writer<std::remove_cvref_t<Writer>>
indexed_shards index_shards(const Storage& where, Writer&& store, index_shards_options options = {}) {
  const auto put = [&store](std::size_t, const std::string& name, bytes_view index) {
    store.open(name);
    store.write(index);
    (void)store.finish();
  };
  return index_shards(where, put, options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/index_shards.ipp>
#endif
