// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/tar/tar_scan.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Indexes that other programs wrote beside a shard, checked against the shard.
namespace penstock::inline v0_1 {
namespace detail {

/// The number of headers that are compared with an index from a store, besides the first and the last.
inline constexpr std::size_t stored_index_checks = 4;

/// What is wrong with an index, as the end of a sentence; the caller adds the name of the index.
struct disagreement {
  std::string text;
};

/// Makes the index of a shard from the text of DALI's. Throws a `disagreement` if the two do not match.
/// `checks`: how many headers are compared besides the first and the last, if the index names all members.
[[nodiscard]] buffer index_from_dali(session_view session, object_id id, object_version shard,
                                     std::string_view text,
                                     std::uint64_t extension_limit = default_extension_limit,
                                     scan_pace pace = {}, std::size_t checks = 62,
                                     bool skip_apple_double = true);
/// Makes the index of a shard from Energon's: the offset of each sample's first header, and the end of the
/// last sample. Throws like `index_from_dali`.
[[nodiscard]] buffer index_from_energon(session_view session, object_id id, object_version shard,
                                        bytes_view offsets,
                                        std::uint64_t extension_limit = default_extension_limit,
                                        scan_pace pace = {}, bool skip_apple_double = true);

/// Makes the index of a shard from the one that `policy` names. Null `near`: a file beside the shard; else an
/// object beside it in its store, of whose headers fewer are compared.
[[nodiscard]] buffer build_foreign_index(session_view session, object_id id, const std::string& shard,
                                         index_policy policy, sidecar_objects* near,
                                         std::uint64_t extension_limit = default_extension_limit,
                                         scan_pace pace = {}, bool skip_apple_double = true);

/// Makes the index of a shard from one of DALI's, version v1.2, beside it in its store, which names all
/// members;
/// nothing if there is none that agrees with the shard.
[[nodiscard]] std::optional<buffer> dali_index_in_store(session_view session, object_id id,
                                                        object_version shard, sidecar_objects& near,
                                                        std::uint64_t extension_limit, scan_pace pace,
                                                        bool skip_apple_double);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/foreign_index.ipp>
#endif
