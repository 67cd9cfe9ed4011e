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

/// Reads headers, not payloads: small reads where members are far apart, large ones where they are close
/// together.
class header_reader {
 public:
  static constexpr bool forward = false;

  header_reader(session_view session, object_id id, std::uint64_t size)
      : session_(session), id_(id), size_(size) {}

  /// `count` bytes at `offset`, fewer at the end of the archive. Lives until the next call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t most);

  /// Where one comes who wants to go to `offset`: no further than the end.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  static constexpr std::uint64_t smallest = 2048;
  static constexpr std::uint64_t largest = 256 * 1024;
  static constexpr std::uint64_t close_by = 32 * 1024;

  void fill(std::uint64_t offset, std::size_t count);

  session_view session_;
  object_id id_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_ = smallest;
  buffer window_;
};

/// The files in an archive, in order. Reads headers only. Ends at the first zero block or at the end of the
/// object. Throws errc::format with the offset, and the path where it is known, for what is not a whole tar
/// archive.
class member_scan {
 public:
  member_scan(session_view session, object_id id, std::uint64_t size, std::uint64_t extension_limit);
  member_scan(const member_scan&) = delete;  // the walk refers to the reader
  member_scan& operator=(const member_scan&) = delete;

  /// The next one; false behind the last.
  [[nodiscard]] bool next(member& found) { return walk_.next(found); }
  /// Behind the last: whether there are no zero blocks that end the archive.
  [[nodiscard]] bool unended() const noexcept { return walk_.unended(); }

 private:
  header_reader in_;
  member_walk walk_;
};

}  // namespace detail::tar
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/source/tar/tar_scan.ipp>
#endif
