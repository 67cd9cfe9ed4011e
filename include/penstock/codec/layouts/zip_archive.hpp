// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <optional>
#include <vector>

/// Zip archives, as far as numpy's npz files need them. Archives must be in one piece: nothing in front of
/// them, nothing between the directory and the end record.
/// Source: PKWARE's APPNOTE.TXT, version 6.3.10, sections 4.3 and 4.5.3.
namespace penstock::inline v0_1::detail {

struct zip_entry {
  std::string_view name;                ///< valid as long as the archive, which may hold its bytes
  std::uint64_t at = 0;                 ///< of its entry in the directory
  std::uint64_t begin = 0, packed = 0;  ///< of its bytes, as they are stored
  std::uint64_t unpacked = 0;
  std::uint32_t checksum = 0;  ///< CRC-32 of the unpacked bytes
  std::uint16_t method = 0;    ///< 0: stored, 8: deflate
  std::uint16_t flags = 0;

  /// The name without the ending that numpy adds.
  [[nodiscard]] std::string_view array() const noexcept {
    return name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
  }
  /// Throws errc::format: "the member 'x' of the npz file <why>".
  [[noreturn, gnu::cold]] void refuse(std::string_view why) const;
};

/// The directory of an archive. Throws errc::format, with the offset, for what is no archive or is damaged.
class zip_archive {
 public:
  /// Bytes of an archive: in place, or read into `room`, which a call replaces.
  struct bytes_of {
    const void* from;
    bytes_view (*range)(const void* from, std::uint64_t offset, std::uint64_t size, buffer& room);
  };

  zip_archive(bytes_of where, std::uint64_t size);
  explicit zip_archive(bytes_view whole);

  /// The member called `name`, or else `name` plus ".npy", as numpy looks for arrays; throws if it is
  /// encrypted, appears twice, or is not where the directory says.
  [[nodiscard]] std::optional<zip_entry> find(std::string_view name) &;
  [[nodiscard]] std::vector<zip_entry> all() &;
  [[nodiscard]] std::uint64_t members() const noexcept { return entries_; }
  /// The first member; there must be one. Throws as `find`.
  [[nodiscard]] zip_entry first() &;
  /// Where the directory begins.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }

 private:
  [[nodiscard]] bytes_view range(std::uint64_t offset, std::uint64_t size, buffer& room) const {
    return archive_.range(archive_.from, offset, size, room);
  }
  void find_directory(std::uint64_t end);
  // The end record of archives with more than 4 GiB or 65,535 members.
  void read_wide_end(std::uint64_t at, std::uint64_t locator, std::uint64_t& disks);
  // Reads the entry at `at`, and advances `at` to the next entry.
  [[nodiscard]] zip_entry entry_at(bytes_view all, std::uint64_t& at) const;
  // With `begin` of its bytes, not of its header.
  [[nodiscard]] zip_entry placed(zip_entry e) const;

  bytes_of archive_;
  buffer room_;           // of the directory, if it is not shown in place
  bytes_view directory_;  // to which the entries' names refer, so it is loaded once
  std::uint64_t begin_ = 0, size_ = 0, entries_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/zip_archive.ipp>
#endif
