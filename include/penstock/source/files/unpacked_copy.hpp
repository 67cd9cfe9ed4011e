// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/local/output_file.hpp>

/// Unpacked copies of packed files, each with a record of what it is a copy of, and the right to make a file.
namespace penstock::inline v0_1 {
namespace detail {

/// The size and modification time of a regular file; nothing if there is none.
[[nodiscard]] std::optional<object_version> version_of_file(const std::string& path) noexcept;

/// A checksum of the first and the last 4 KiB of a file, which is not 0; 0 if it cannot be read.
[[nodiscard]] std::uint64_t ends_of_file(const std::string& path) noexcept;

/// The versions of a packed file and of its copy when the copy was made. 64 bytes, described in
/// docs/shard_indexes.md.
struct copy_record {
  static constexpr std::size_t size = 64;
  static constexpr std::string_view magic = "PENSTCPY";
  static constexpr std::uint32_t version = 1;

  object_version packed;
  object_version copy;
  std::uint64_t ends = 0;  ///< `ends_of_file` of the packed file; 0 in records of earlier versions

  [[nodiscard]] std::array<std::byte, size> bytes() const noexcept;
  /// Returns nothing if the bytes are not a complete record of this version.
  [[nodiscard]] static std::optional<copy_record> load(bytes_view from) noexcept;
};

/// The folder of a path: "." if it names none.
[[nodiscard]] std::string folder_of(const std::string& path);

/// The path of a packed file's copy: beside it, or in a subfolder of `folder` that is named after the packed
/// file's own folder, so that files with equal names do not collide. The copy's file name does not depend on
/// where the dataset is.
[[nodiscard]] std::string copy_path(const std::string& packed, const std::string& folder);

/// Removes temporary files that were left where this file was to be made.
void remove_leftovers(const std::string& path);

/// Makes a folder and its missing parents. Returns 0 or errno.
[[nodiscard]] int make_folders(const std::string& path);
[[nodiscard]] inline std::string record_path(const std::string& copy) { return copy + ".record"; }

/// A packed file, in a state.
struct packed_state {
  const std::string& path;
  object_version version;
};
/// Whether `copy` exists, is unchanged, and was made from this state of the packed file.
[[nodiscard]] bool copy_is_current(const std::string& copy, const packed_state& packed);

/// The right to make a copy, which one thread of one process on the machine holds at a time. The lock ends
/// with the process, however that ends. The copy is renamed into place, so the lock only saves duplicate
/// work.
class copy_lock {
 public:
  /// Waits for the others.
  explicit copy_lock(std::string copy);

  [[nodiscard]] bool current(const packed_state& packed) const;
  /// Records that there is no copy, and removes leftovers of earlier ones.
  void begin() const;
  /// Records what the copy was made from. The copy must have been renamed into place before.
  void finish(const copy_record& record) const;

 private:
  [[nodiscard]] static error failure(std::string_view doing, const std::string& path);

  std::string copy_;
  owned_descriptor opened_;
};

/// The right to make one file, which one thread of one process on the machine holds at a time. The lock
/// ends with the process, however that ends. The file is renamed into place, so a file system without locks
/// costs duplicate work and nothing else.
class making_lock : unmovable {
 public:
  /// Waits for the others.
  explicit making_lock(const std::string& path);
  ~making_lock();

 private:
  [[nodiscard]] bool still_there() const noexcept;

  std::string lock_;
  owned_descriptor opened_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/files/unpacked_copy.ipp>
#endif
