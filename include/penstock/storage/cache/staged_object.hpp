// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail::staging {

/// A storage whose type is erased, connected. All of it must outlive the staging.
struct far_storage {
  session_view session;
  std::span<const std::string> names;
  bool paths;  ///< whether the names are paths
  bool files;  ///< whether the objects are the files of these paths
};

/// An object and its place in the folder.
struct staged_object {
  std::string_view name;  ///< in its storage
  std::string known_as;   ///< in records: that name, or the whole path
  std::string file;       ///< in the folder
  object_version version;
};

/// The files, relative to one folder, that objects with these names are copied to: what follows the folder
/// that all names have in common. Of URLs neither scheme nor query is part of it.
/// Throws errc::argument for a name that leaves the folder or has no place in it, and for two objects that
/// would have one.
[[nodiscard]] std::vector<std::string> staged_names(std::span<const std::string> names, bool are_paths);

struct file_facts {
  std::uint64_t size = 0;
  std::uint64_t changed = 0;  ///< the time of modification, in nanoseconds
  std::uint64_t inode = 0;
  std::uint64_t born = 0;  ///< when it was made, in nanoseconds; 0 where the file system does not say
  bool regular = false;
};

/// A copy that was complete, and how its file is known again.
struct whole_copy {
  object_version of;  ///< the object's
  file_facts file;

  /// Whether this file was written as that copy, even if it was changed since, or is a copy of it with its
  /// time, as `cp -p` makes one.
  [[nodiscard]] bool wrote(const file_facts& found) const noexcept {
    return intact(found) || (found.inode == file.inode && found.born == file.born);
  }
  [[nodiscard]] bool intact(const file_facts& found) const noexcept {
    return found.size == file.size && found.changed == file.changed;
  }
};

inline constexpr std::string_view record_head = "penstock staged 1\n";

/// What is kept of a staged object, beside its file.
///
/// The record of a copy is written before its file gets its name, so the file that was there before is in it,
/// too, for a process that dies between the two.
struct record {
  std::string object;                ///< its name in its storage
  std::string file;                  ///< its name in the folder
  std::optional<whole_copy> before;  ///< what is replaced
  std::optional<whole_copy> last;
  std::optional<object_version> part;  ///< whose first bytes are in the unfinished file
  /// Between which two starts of the machine the unfinished file was written: after another one nobody knows
  /// which of its bytes are on the disk.
  std::string boot;

  /// The copy that a file was written as.
  [[nodiscard]] const whole_copy* copy_of(const file_facts& found) const noexcept;
};

[[nodiscard]] std::string to_text(const record& what);
/// Nothing for a text that is no record.
// What is not exactly as it would be written, its sum included, is no record.
[[nodiscard]] std::optional<record> parse_record(std::string_view text);

}  // namespace penstock::inline v0_1::detail::staging

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/cache/staged_object.ipp>
#endif
