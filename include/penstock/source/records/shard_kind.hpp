// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/index_policy.hpp>
#include <penstock/source/records/header_reader.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail {

/// The default maximum size of an extension header.
inline constexpr std::uint64_t default_extension_limit = std::uint64_t{1} << 20;

/// What was wrong with a shard, if the samples before it were taken.
struct shard_damage {
  bool found = false;
  std::uint64_t offset = 0;
  std::string reason;

  void note(const error& e, std::uint64_t at) {
    found = true;
    offset = e.offset().value_or(at);
    reason = e.message();
  }
};

/// How the index of a shard is made.
struct build_options {
  bool skip_apple_double = true;
  shard_damage* damage = nullptr;  ///< null: damage is an error; see `on_damaged_shard`
};

/// A kind of shards: how their indexes are made, and compared with them.
struct shard_kind {
  std::string_view source_name;  ///< the source that reads them
  bool bytewise;                 ///< whether samples begin anywhere, and not at multiples of 512

  /// Makes the index of an object in one pass over its headers. `name` is for errors.
  buffer (*build)(session_view session, object_id id, const std::string& name, std::uint64_t extension_limit,
                  scan_pace pace, build_options options);
  /// Whether an index of the object's size is that of its content, as far as a few headers show.
  bool (*agrees)(session_view session, object_id id, const shard_index& index, scan_pace pace,
                 std::uint64_t extension_limit);
  /// Whether the headers of the first and the last member are where an index of the object's size says, and
  /// what it says: two small reads. May be false for an index that is right, if its archive writes names or
  /// sizes in an unusual way.
  bool (*has_ends)(session_view session, object_id id, const shard_index& index);
  /// Makes the index of a shard from the one of another program that `policy` names; null if there is no such
  /// program. Null `near`: a file beside the shard; else an object beside it in its store.
  buffer (*build_foreign)(session_view session, object_id id, const std::string& shard, index_policy policy,
                          sidecar_objects* near, std::uint64_t extension_limit, scan_pace pace,
                          bool skip_apple_double) = nullptr;
  /// The same, where an index that names all members lies beside the shard in its store; nothing if none
  /// does.
  std::optional<buffer> (*foreign_in_store)(session_view session, object_id id, object_version shard,
                                            sidecar_objects& near, std::uint64_t extension_limit,
                                            scan_pace pace, bool skip_apple_double) = nullptr;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
