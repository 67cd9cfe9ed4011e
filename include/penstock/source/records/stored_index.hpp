// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <optional>
#include <string>

/// Indexes that lie beside a shard in its store.
namespace penstock::inline v0_1 {
namespace detail {

/// The index of a shard that lies beside it in the store: Penstock's own, or else another
/// program's that names all members. It has the shard's version as the store says it.
///
/// Penstock's is taken as it is if it was made for this version; one that was made elsewhere, from a copy
/// of the shard with another stamp, and others' are compared with a few headers of the shard. Nothing if
/// there is none that agrees; `why` then gets what is wrong with Penstock's.
[[nodiscard]] std::optional<buffer> index_in_store(session_view session, object_id id, sidecar_objects& near,
                                                   const shard_kind& kind, scan_pace pace,
                                                   std::uint64_t extension_limit, std::string& why,
                                                   bool skip_apple_double = true);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/records/stored_index.ipp>
#endif
