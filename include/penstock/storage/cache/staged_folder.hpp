// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/cache/staged_record.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/local/paths.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {
namespace detail::staging {

using files::descriptor;

/// An object and its place in the folder.
struct staged_object {
  std::string_view name;  ///< in its storage
  std::string known_as;   ///< in records: that name, or the whole path
  std::string file;       ///< in the folder
  object_version version;
};

/// What there is of an object.
struct found_copy {
  bool whole = false;
  std::uint64_t part = 0;  ///< bytes that can be gone on with
};

/// A folder of complete files under their names, and a folder in it, `.penstock-staged`, of what belongs to
/// them: a record of each, the files that are not complete, and a file whose bytes are locked.
///
/// Whoever changes what belongs to an object has the lock of its byte, which the system takes away when the
/// process ends, however it ends.
/// Threads: any number, each with another object.
class staged_folder {
 public:
  /// Opens the folder, or makes it. Throws as `stage_to` says.
  explicit staged_folder(std::string path);
  staged_folder(const staged_folder&) = delete;
  staged_folder& operator=(const staged_folder&) = delete;
  ~staged_folder();

  [[nodiscard]] std::string path_of(const staged_object& what) const { return path_ + '/' + what.file; }
  /// Bytes that the file system has left for this user.
  [[nodiscard]] std::uint64_t available() const;
  [[nodiscard]] error no_room(std::uint64_t needed, std::string_view file) const;

  [[nodiscard]] bool try_lock(const staged_object& what) const noexcept;
  void unlock(const staged_object& what) const noexcept;

  /// Looks at what is there. Throws errc::argument for a file that is not a copy of this object. `resumes`:
  /// whether a part may be gone on with. Needs no lock.
  [[nodiscard]] found_copy look(const staged_object& what, bool resumes) const;

  /// The unfinished file of an object, with its first `from` bytes, or a new one. The caller has the lock, as
  /// for all that follows.
  [[nodiscard]] descriptor open_part(const staged_object& what, std::uint64_t from) const;
  void write(const staged_object& what, int part, std::uint64_t offset, bytes_view bytes) const;
  /// Copies from a file, inside the system. Returns how many bytes, or nothing if that cannot be done here.
  [[nodiscard]] std::optional<std::uint64_t> copy(const staged_object& what, int from, int part,
                                                  std::uint64_t offset, std::uint64_t size) const;
  /// Reads what `open_part` found there.
  void read(const staged_object& what, int part, std::uint64_t offset, mutable_bytes into) const;
  /// Flushes the file and gives it its name.
  void finish(const staged_object& what, const descriptor& part) const;
  void discard_part(const staged_object& what) const;

 private:
  [[nodiscard]] static descriptor open_folder(int in, const std::string& name, const std::string& path);
  [[nodiscard]] std::optional<record> read_record(const staged_object& what) const;
  void write_record(const staged_object& what, const record& about, bool flush) const;
  /// The record for what comes: with the copy that is there, if it is one.
  [[nodiscard]] record begin_record(const staged_object& what) const;
  [[nodiscard]] error failed_write(const staged_object& what, std::uint64_t offset, std::uint64_t size,
                                   int code) const;

  std::string path_;
  std::string boot_;  // empty if it is not known
  descriptor folder_, kept_, lock_;
};

}  // namespace detail::staging
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/staged_folder.ipp>
#endif
