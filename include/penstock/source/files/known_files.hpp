// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

namespace penstock::inline v0_1 {
namespace detail {

/// Bytes of a file.
struct file_stretch {
  std::uint64_t begin = 0, size = 0;
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
  /// Notes the ends of an object, for `compare`.
  void learn_ends(object_id id, std::uint64_t hash);

 private:
  [[noreturn]] void no_such_sample(std::uint64_t index) const;
};

/// `work()`, which reads an object: errors name the file, unless the object has changed, which is the error
/// then.
template <class Work>
auto reading_object(session_view session, object_id object, std::string_view name, Work&& work) {
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      session.confirm(object);
    } else {
      auto made = work();
      session.confirm(object);
      return made;
    }
  } catch (error& e) {
    session.confirm(object);
    e.in_file(name);
    throw;
  }
}

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
