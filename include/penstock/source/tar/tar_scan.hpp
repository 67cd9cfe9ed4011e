// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// How much a scan reads at once. A read that follows the one before it is four times as large.
struct scan_pace {
  std::uint64_t smallest = 2048;
  std::uint64_t largest = 256 * 1024;
  std::uint64_t gap = 32 * 1024;  ///< headers that are further apart are read one by one

  /// For a storage whose reads have latency, where a few bytes take as long as many.
  [[nodiscard]] static constexpr scan_pace far(std::uint64_t gap) noexcept {
    return {8 * 1024, 4 * 1024 * 1024, gap};
  }
};

/// Reads headers, not payloads: with small reads if members are far apart, with large ones if they are
/// close together.
class header_reader {
 public:
  static constexpr bool forward = false;

  header_reader(session_view session, object_id id, std::uint64_t size, scan_pace pace = {})
      : session_(session), id_(id), size_(size), pace_(pace), ahead_(pace.smallest) {}

  /// At most `maximum` bytes at `offset`, fewer at the end of the archive. The view is valid until the next
  /// call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t maximum);

  /// `offset`, or the end if that is nearer.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  void fill(std::uint64_t offset, std::size_t count);

  session_view session_;
  object_id id_;
  std::uint64_t size_;
  scan_pace pace_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_;
  buffer window_;
};

/// The files in an archive, in order. Reads headers only. Ends at the first zero block or at the end of the
/// object. Throws errc::format with the offset, and the path if it is known, if the object is not a
/// complete tar archive.
class member_scan {
 public:
  member_scan(session_view session, object_id id, std::uint64_t size, std::uint64_t extension_limit,
              scan_pace pace = {});
  member_scan(const member_scan&) = delete;  // the walk refers to the reader
  member_scan& operator=(const member_scan&) = delete;

  /// Finds the next file; false after the last.
  [[nodiscard]] bool next(member& found) { return walk_.next(found); }
  /// After the last file: whether the zero blocks that end an archive are missing.
  [[nodiscard]] bool unended() const noexcept { return walk_.unended(); }
  /// See `member_walk`.
  [[nodiscard]] bool found_any() const noexcept { return walk_.found_any(); }

 private:
  header_reader in_;
  member_walk walk_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_scan.ipp>
#endif
