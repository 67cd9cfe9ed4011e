// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/index_policy.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/source/tar/foreign_index.hpp>

namespace penstock::inline v0_1 {

namespace detail {

/// Makes the index of a shard from Energon's: the offset of each sample's first header, and the end of the
/// last sample. Throws a `disagreement` if the two do not match.
[[nodiscard]] inline buffer index_from_energon(const foreign_shard& shard, bytes_view offsets) {
  foreign_check made(shard);
  if (offsets.empty() || offsets.size() % 8 != 0) disagree({"is not a list of 64-bit offsets"});
  const std::uint64_t samples = offsets.size() / 8 - 1;
  const auto offset = [&](std::uint64_t i) { return load_little<std::uint64_t>(offsets.data() + 8 * i); };
  std::uint64_t end = 0;
  auto found = made.members();
  for (shard_member m; found.next(m);) {
    const std::uint64_t before = made.builder.met();
    if (!made.belongs(m)) continue;
    made.builder.add(m);
    end = m.data + m.size;
    if (made.builder.met() == before) continue;
    if (before >= samples)
      disagree({"has ", samples, " samples, and the shard has another one at ", m.header});
    if (offset(before) != m.header)
      disagree({"says that sample ", before, " begins at ", offset(before),
                ", and the shard has another one at ", m.header});
  }
  made.builder.note_unended(found.unended());
  if (made.builder.met() != samples) {
    disagree({"has ", samples, " samples, and the shard has ", made.builder.met()});
  }
  if (offset(samples) < end || offset(samples) > shard.version.size)
    disagree({"says that the samples end at ", offset(samples), ", and they end at ", end});
  return made.builder.finish(shard.version);
}

inline constexpr foreign_index energon_file{"Energon", {".idx"}, &index_from_energon, &build_foreign_index};

}  // namespace detail

/// The indexes that Megatron-Energon writes beside shards, `train-0.tar.idx`, as the policy of `webdataset`
/// and of `energon`.
///
///     auto samples = webdataset("train-{0000..0127}.tar", index_policy::cache.or_else(energon_index));
///
/// All headers of a shard are read and compared with its index. The offsets in the SQLite database of a
/// `.nv-meta` repeat it, and are not read.
/// Source: Megatron-Energon, itar.py.
inline constexpr foreign_index_policy energon_index{detail::energon_file};

}  // namespace penstock::inline v0_1
