// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/packed_format.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// WebDataset's tar archives.
[[nodiscard]] const shard_kind& tar_shards() noexcept;
/// The same in local files, beside which lie no indexes that were made elsewhere.
[[nodiscard]] const shard_kind& local_tar_shards() noexcept;

/// The same, read forward.
[[nodiscard]] const stream_kind& tar_streams() noexcept;

/// Makes the index of an object in one pass over its headers.
[[nodiscard]] buffer build_index(session_view session, object_id id, const std::string& name,
                                 std::uint64_t extension_limit = default_extension_limit, scan_pace pace = {},
                                 build_options options = {});

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_shards.ipp>
#endif
