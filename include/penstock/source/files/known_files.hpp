// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// What was found in a file when a plan was made; `content` is a hash for the fingerprint, and `ends` that of
/// `hash_of_file`, if it is known.
struct file_facts {
  std::uint64_t samples = 0, payload = 0, content = 0, ends = 0;
};

/// The files of a dataset as they were when its plan was made.
struct known_files {
  manifest shards;
  std::vector<object_version> versions;  // by shard
  std::vector<object_id> objects;        // by shard; empty if shard `i` is object `i`
  std::vector<std::uint64_t> ends;       // by object: `ends_of`; 0: not known

  [[nodiscard]] object_id object(std::size_t shard) const noexcept {
    return objects.empty() ? static_cast<object_id>(shard) : objects[shard];
  }
  [[nodiscard]] const std::string& path(std::size_t shard) const { return shards.shards()[shard].name; }
  /// The place of a sample; throws `errc::argument` if there is no such sample.
  [[nodiscard]] manifest::place locate(std::uint64_t index) const {
    if (index >= shards.samples()) no_such_sample(index);
    return shards.locate(index);
  }
  /// Throws `errc::io` if a file has changed since the plan was made, or was replaced by another one of its
  /// size and time whose first or last 4 KiB are others. Call it when a run first reads the file.
  void compare(session_view session, std::size_t shard) const;
  /// The first of these alone, by the version.
  void compare_version(session_view session, std::size_t shard) const;
  /// Reads all objects, several at a time, in up to `threads` threads (0: one per processor, or 32 for
  /// distant ones): `read(i, version)` returns what is in one. Throws what it throws, with the object's name,
  /// and errc::argument if there is none.
  template <class Read>
  void read_each(storage_facts where, session_view session, Read&& read, std::size_t threads = 0) {
    read_all(where, session, threads, &read, [](void* self, std::size_t i, object_version version) {
      return (*static_cast<std::remove_reference_t<Read>*>(self))(i, version);
    });
  }
  /// Notes the ends of an object, for `compare`.
  void learn_ends(object_id id, std::uint64_t hash);

 private:
  void read_all(storage_facts where, session_view session, std::size_t threads, void* self,
                file_facts (*read)(void* self, std::size_t i, object_version version));
  [[noreturn]] void no_such_sample(std::uint64_t index) const;
};

/// What a plan knows about files, and the storage that holds them.
template <class Known, storage Storage>
struct stored_in : Known {
  Storage where;

  template <class... Args>
  explicit stored_in(Storage given, Args&&... args)
      : Known(std::forward<Args>(args)...), where(std::move(given)) {}
};

/// A hash of the first and the last 4 KiB of a file: two small reads, whatever its size.
[[nodiscard]] std::uint64_t hash_of_file(session_view session, object_id object, std::uint64_t size);
/// The same, or 0 where nothing need be read, since the object's version is a tag of its bytes.
[[nodiscard]] std::uint64_t ends_of(session_view session, object_id object, std::uint64_t size);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/known_files.ipp>
#endif
