// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <string>
#include <string_view>

/// Indexes that other programs wrote beside a shard, checked against the shard.
namespace penstock::inline v0_1 {
namespace detail::tar {

/// What is wrong with an index, as the end of a sentence; the caller adds the name of the index.
struct disagreement {
  std::string text;
};

/// Makes the index of a shard from the text of DALI's. Throws a `disagreement` if the two do not match.
[[nodiscard]] buffer index_from_dali(session_view session, object_id id, object_signature shard,
                                     std::string_view text,
                                     std::uint64_t extension_limit = default_extension_limit);
/// Makes the index of a shard from Energon's: the offset of each sample's first header, and the end of the
/// last sample. Throws like `index_from_dali`.
[[nodiscard]] buffer index_from_energon(session_view session, object_id id, object_signature shard,
                                        bytes_view offsets,
                                        std::uint64_t extension_limit = default_extension_limit);

/// Makes the index of a shard from the one that `policy` names.
[[nodiscard]] buffer build_foreign_index(session_view session, object_id id, const std::string& shard,
                                         index_policy policy,
                                         std::uint64_t extension_limit = default_extension_limit);

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/foreign_index.ipp>
#endif
