// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/records/index_builder.hpp>
#include <penstock/source/records/member_name.hpp>
#include <penstock/source/records/shard_kind.hpp>
#include <penstock/source/tar/tar_walk.hpp>

/// Indexes that other programs wrote beside a shard, checked against the shard.
namespace penstock::inline v0_1 {
namespace detail {

/// What is wrong with an index, as the end of a sentence; the caller adds the name of the index.
struct disagreement {
  std::string text;
};

[[noreturn, gnu::cold]] void disagree(std::initializer_list<piece> what);

/// Makes the index of a shard from a foreign one.
struct foreign_check {
  foreign_shard shard;
  index_builder builder;

  explicit foreign_check(const foreign_shard& given)
      : shard(given), builder(false, given.skip_apple_double) {}

  [[nodiscard]] bool belongs(const shard_member& m) const noexcept {
    return !skipped_member(m.path) && !(shard.skip_apple_double && is_apple_double(m.path)) &&
           split_member(m.path);
  }
  [[nodiscard]] tar::member_scan members() const {
    return {shard.session, shard.id, shard.version.size, shard.extension_limit, shard.pace};
  }
};

/// Makes the index of a shard from the file of another program. Null `near`: a file beside the shard; else an
/// object beside it in its store, of whose headers fewer are compared.
[[nodiscard]] buffer build_foreign_index(const foreign_index& other, foreign_shard shard,
                                         const std::string& name, sidecar_objects* near);

/// Makes the index of a shard from the text of DALI's. Throws a `disagreement` if the two do not match.
[[nodiscard]] buffer index_from_dali(const foreign_shard& shard, bytes_view text);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/foreign_index.ipp>
#endif
