// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/index_policy.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/source/tar/foreign_index.hpp>

namespace penstock::inline v0_1 {

namespace detail {
inline constexpr foreign_index dali_file{"DALI", {".idx", true}, &index_from_dali, &build_foreign_index};
}  // namespace detail

/// The indexes that DALI's `wds2idx` writes beside shards, `train-0.idx` for `train-0.tar`, as the policy of
/// `webdataset`.
///
///     auto samples = webdataset("train-{0000..0127}.tar", index_policy::cache.or_else(dali_index));
///
/// Version v1.2 names all members, so only a few headers are read: the first, the last and 62 between them,
/// or four of a shard in a store. Version v1.1 does not, so all headers are read and compared, after
/// `or_else`, too. What `index_policy::cache.or_else(dali_index)` made from DALI's index and has compared is
/// kept as an index of Penstock's, and DALI's is not asked again.
/// Source: DALI, wds2idx.py and webdataset_loader.cc.
inline constexpr foreign_index_policy dali_index{detail::dali_file};

}  // namespace penstock::inline v0_1
