// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/source/detail/packed_format.hpp>
#include <penstock/source/tar/tar_header.hpp>
#include <penstock/source/tar/tar_walk.hpp>
#include <penstock/storage/concepts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::tar {

/// Reads headers, not payloads: small reads where members are far apart, large ones where they are close
/// together.
template <storage_session Session>
class header_reader {
 public:
  header_reader(Session& session, object_id id, std::uint64_t size)
      : session_(session), id_(id), size_(size) {}

  /// `count` bytes at `offset`, fewer at the end of the archive. Lives until the next call.
  [[nodiscard]] bytes_view get(std::uint64_t offset, std::size_t most) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, size_ - reach(offset)));
    if (count == 0) return {};
    if constexpr (viewing_session<Session>) {
      return session_.view(id_, offset, count);
    } else {
      if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
      return window_.view().subspan(static_cast<std::size_t>(offset - begin_), count);
    }
  }

  /// Where one comes who wants to go to `offset`: no further than the end.
  [[nodiscard]] std::uint64_t reach(std::uint64_t offset) const noexcept { return std::min(offset, size_); }

 private:
  static constexpr std::uint64_t smallest = 2048;
  static constexpr std::uint64_t largest = 256 * 1024;
  static constexpr std::uint64_t close_by = 32 * 1024;

  void fill(std::uint64_t offset, std::size_t count) {
    const std::uint64_t end = begin_ + window_.size();
    const bool follows = offset >= begin_ && (offset < end || offset - end < close_by);
    ahead_ = follows ? std::min(ahead_ * 4, largest) : smallest;
    const std::uint64_t wanted =
        std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
    window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
    begin_ = offset;
    session_.read(id_, offset, window_.span());
  }

  Session& session_;
  object_id id_;
  std::uint64_t size_;
  std::uint64_t begin_ = 0;
  std::uint64_t ahead_ = smallest;
  buffer window_;
};

/// Calls `visit(member)` for each file in the archive, in order. Reads headers only. Ends at the first zero
/// block or at the end of the object. Throws errc::format with the offset, and the path where it is known,
/// for what is not a whole tar archive.
template <storage_session Session, class Visit>
void scan(Session& session, object_id id, std::uint64_t size, Visit&& visit) {
  header_reader<Session> in(session, id, size);
  const bytes_view head = in.get(0, 4096);
  const auto compressed = compression_of(head);
  if (!compressed.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size)))) {
    std::string advice = packed_advice(compressed, "webdataset(unpacked<", ">(...))");
    if (!packed_format_of(compressed).format.empty())
      advice +=
          ", from <penstock/source/unpacked.hpp>, for copies in which samples can be reached, or use "
          "webdataset_stream to read it forward";
    throw error(errc::format, advice).at_offset(0);
  }
  member_walk<header_reader<Session>> walk(in);
  member found;
  while (walk.next(found)) visit(found);
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
