// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>
#include <penstock/storage/session_view.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

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
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t maximum) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(maximum, size_ - reach(offset)));
    if (count == 0) return {};
    if (session_.views()) return session_.view(id_, offset, count);
    if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
    return window_.view().subspan(detail::to_size(offset - begin_), count);
  }

  /// `offset`, or the end if that is nearer.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  void fill(std::uint64_t offset, std::size_t count) {
    const std::uint64_t end = begin_ + window_.size();
    const bool follows = offset >= begin_ && (offset < end || offset - end < pace_.gap);
    ahead_ = follows ? std::min(ahead_ * 4, pace_.largest) : pace_.smallest;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
    window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
    begin_ = offset;
    session_.read(id_, offset, window_.span());
  }

  session_view session_;
  object_id id_;
  std::uint64_t size_;
  scan_pace pace_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_;
  buffer window_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
