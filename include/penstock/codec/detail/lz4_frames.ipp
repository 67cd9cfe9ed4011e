// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/lz4_frames.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE lz4_frame_walk::lz4_frame_walk(bytes_view packed) : packed_(packed) {
  if (packed.empty())
    throw error(errc::format, "there are no bytes, not even an empty lz4 frame").at_offset(0);
}

PENSTOCK_INLINE lz4_frame lz4_frame_walk::next() {
  const std::size_t start = at_;
  lz4_frame frame;
  const bool begins = packed_.size() - at_ >= 4;
  const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
  if ((number & ~15u) == skippable) {
    frame.skippable = true;
    skip(little(4));
  } else if (number == magic) {
    read(frame, start);
  } else if (number == legacy) {
    throw error(errc::format, "this is lz4's legacy format, which is not supported: pack it again with lz4")
        .at_offset(start);
  } else {
    if (start == 0) throw not_a("an lz4 frame", packed_, {});
    throw error(errc::format, "there is something after the last lz4 frame").at_offset(start);
  }
  frame.bytes = packed_.subspan(start, at_ - start);
  return frame;
}

PENSTOCK_INLINE std::uint64_t lz4_frame_walk::little(std::size_t bytes) {
  need(bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
  at_ += bytes;
  return value;
}

PENSTOCK_INLINE void lz4_frame_walk::skip(std::uint64_t bytes) {
  need(bytes);
  at_ += detail::to_size(bytes);
}

PENSTOCK_INLINE void lz4_frame_walk::need(std::uint64_t bytes) const {
  if (packed_.size() - at_ < bytes)
    throw error(errc::format, "the lz4 frame is cut short").at_offset(packed_.size());
}

PENSTOCK_INLINE void lz4_frame_walk::read(lz4_frame& frame, std::size_t start) {
  const std::uint64_t flags = little(1);
  const std::uint64_t block = little(1);
  if (flags >> 6 != 1)
    throw error(errc::format, {"the lz4 frame has version ", flags >> 6, ", and only version 1 is known"})
        .at_offset(start + 4);
  const std::uint64_t code = block >> 4;
  if ((flags & 2) != 0 || (block & 0x0f) != 0 || code < 4 || code > 7)
    throw error(errc::format, "the lz4 frame header has a reserved bit set").at_offset(start + 4);
  const std::uint64_t maximum = std::uint64_t{1} << (8 + 2 * code);  // 64 KiB to 4 MiB
  frame.known = (flags & 8) != 0;
  if (frame.known) frame.content = little(8);
  if ((flags & 1) != 0) {
    if (const std::uint64_t dictionary = little(4); dictionary != 0)
      throw error(errc::format,
                  {"the lz4 frame needs dictionary ", dictionary, ", but dictionaries are not supported"})
          .at_offset(start);
  }
  skip(1);  // the header checksum, which the library verifies
  for (;;) {
    const std::size_t at = at_;
    const std::uint64_t header = little(4);
    if (header == 0) break;
    const std::uint64_t size = header & 0x7fffffffu;
    if (size > maximum)
      throw error(errc::format, "the lz4 frame has a block that is larger than it says").at_offset(at);
    skip(size);
    // no byte of a packed block expands to more than 255
    frame.bound += (header >> 31) != 0 ? size : std::min(maximum, 255 * size);
    if ((flags & 16) != 0) skip(4);
  }
  if ((flags & 4) != 0) skip(4);
  if (frame.known && frame.content > frame.bound)
    throw error(errc::format, {"the lz4 frame says that it holds ", frame.content,
                               " bytes, but its blocks hold at most ", frame.bound})
        .at_offset(start);
}

}  // namespace penstock::inline v0_1::detail
