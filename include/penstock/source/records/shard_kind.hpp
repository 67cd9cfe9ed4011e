// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/sidecar_objects.hpp>
#include <penstock/source/records/header_reader.hpp>
#include <penstock/source/records/shard_index.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>

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
  /// Whether an index of the object's size is that of its content, as far as a few headers show; null for
  /// local files.
  bool (*agrees)(session_view session, object_id id, const shard_index& index, scan_pace pace,
                 std::uint64_t extension_limit);
  /// Whether the headers of the first and the last member are where an index of the object's size says, and
  /// what it says: two small reads. May be false for an index that is right, if its archive writes names or
  /// sizes in an unusual way.
  bool (*has_ends)(session_view session, object_id id, const shard_index& index);
};

/// The number of headers that are compared with an index from a store, besides the first and the last.
inline constexpr std::size_t stored_index_checks = 4;

/// A shard, and how it is compared with an index that another program made of it.
struct foreign_shard {
  session_view session;
  object_id id;
  object_version version;
  std::uint64_t extension_limit = default_extension_limit;
  scan_pace pace = {};
  bool skip_apple_double = true;
  /// how many headers besides the first and the last, if the index names all members
  std::size_t checks = 62;
};

/// An index that another program writes beside a shard.
struct foreign_index {
  std::string_view program;
  sidecar file;
  /// Makes Penstock's of its bytes.
  buffer (*translate)(const foreign_shard& shard, bytes_view bytes);
  /// Reads it and makes Penstock's. Null `near`: a file beside the shard; else an object beside it in its
  /// store.
  buffer (*build)(const foreign_index& other, foreign_shard shard, const std::string& name,
                  sidecar_objects* near);
};

}  // namespace detail
}  // namespace penstock::inline v0_1
