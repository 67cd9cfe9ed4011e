// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/tar_scan.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/detail/packed_format.hpp>
#include <penstock/source/tar/tar_header.hpp>

#include <string>

namespace penstock::inline v0_1 {
namespace detail::tar {

PENSTOCK_INLINE bytes_view header_reader::get(std::uint64_t offset, std::size_t maximum) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(maximum, size_ - reach(offset)));
  if (count == 0) return {};
  if (session_.views()) return session_.view(id_, offset, count);
  if (offset < begin_ || offset + count > begin_ + window_.size()) fill(offset, count);
  return window_.view().subspan(detail::to_size(offset - begin_), count);
}

PENSTOCK_INLINE void header_reader::fill(std::uint64_t offset, std::size_t count) {
  const std::uint64_t end = begin_ + window_.size();
  const bool follows = offset >= begin_ && (offset < end || offset - end < pace_.gap);
  ahead_ = follows ? std::min(ahead_ * 4, pace_.largest) : pace_.smallest;
  const std::uint64_t wanted =
      std::min<std::uint64_t>(std::max<std::uint64_t>(count, ahead_), size_ - offset);
  window_.resize_for_overwrite(static_cast<std::size_t>(wanted));
  begin_ = offset;
  session_.read(id_, offset, window_.span());
}

PENSTOCK_INLINE member_scan::member_scan(session_view session, object_id id, std::uint64_t size,
                                         std::uint64_t extension_limit, scan_pace pace)
    : in_(session, id, size, pace), walk_(walk_input::of(in_), extension_limit) {
  const bytes_view head = in_.get(0, 4096);
  const auto compressed = compression_of(head);
  if (!compressed.empty() && !(head.size() >= block_size && checksum_matches(head.first(block_size)))) {
    std::string advice = packed_advice(compressed, "webdataset(unpacked<", ">(...))");
    if (!packed_format_of(compressed).format.empty())
      advice +=
          ", from <penstock/source/unpacked.hpp>, for copies in which samples can be reached, or use "
          "webdataset_stream to read it forward";
    throw error(errc::format, advice).at_offset(0);
  }
}

}  // namespace detail::tar
}  // namespace penstock::inline v0_1
