// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/zstd_frames.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE zstd_extent zstd_frame_walk::run() {
  if (packed_.empty())
    throw error(errc::format, "there are no bytes, not even an empty zstd frame").at_offset(0);
  while (at_ < packed_.size()) frame();
  return found_;
}

PENSTOCK_INLINE std::uint64_t zstd_frame_walk::little(std::size_t bytes) {
  if (packed_.size() - at_ < bytes)
    throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
  at_ += bytes;
  return value;
}

PENSTOCK_INLINE void zstd_frame_walk::skip(std::uint64_t bytes) {
  if (packed_.size() - at_ < bytes)
    throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
  at_ += detail::to_size(bytes);
}

PENSTOCK_INLINE void zstd_frame_walk::frame() {
  const std::size_t start = at_;
  const bool begins = packed_.size() - at_ >= 4;
  const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
  if ((number & ~15u) == skippable) return skip(little(4));
  if (number != magic && start == 0) throw not_a("a zstd frame", packed_, {});
  if (number != magic)
    throw error(errc::format, "there is something after the last zstd frame").at_offset(start);
  const auto descriptor = static_cast<unsigned>(little(1));
  const bool single_segment = (descriptor & 0x20) != 0;
  if ((descriptor & 0x08) != 0)
    throw error(errc::format, "the zstd frame header has a reserved bit set").at_offset(start + 4);
  constexpr std::size_t dictionary_bytes[] = {0, 1, 2, 4};
  const std::size_t size_bytes[] = {single_segment ? std::size_t{1} : std::size_t{0}, 2, 4, 8};
  const std::size_t size_field = size_bytes[descriptor >> 6];
  if (!single_segment) skip(1);
  if (const std::uint64_t dictionary = little(dictionary_bytes[descriptor & 3]); dictionary != 0)
    throw error(errc::format,
                {"the zstd frame needs dictionary ", dictionary, ", but dictionaries are not supported"})
        .at_offset(start);
  std::uint64_t content = little(size_field);
  if (size_field == 2) content += 256;
  const std::uint64_t bound = blocks();
  if ((descriptor & 0x04) != 0) skip(4);
  if (size_field == 0) {
    found_.known = false;
  } else if (content > bound) {
    throw error(errc::format, {"the zstd frame says that it holds ", content,
                               " bytes, but its blocks hold at most ", bound})
        .at_offset(start);
  }
  // no overflow: each block takes at least three bytes of input and holds less than 2^22
  found_.content += content;
  found_.bound += bound;
}

PENSTOCK_INLINE std::uint64_t zstd_frame_walk::blocks() {
  std::uint64_t bound = 0;
  for (;;) {
    const std::size_t start = at_;
    const std::uint64_t header = little(3);
    const std::uint64_t size = header >> 3;
    switch (header >> 1 & 3) {
      case 0:
        skip(size);
        bound += size;
        break;
      case 1:
        skip(1);
        bound += size;
        break;
      case 2:
        skip(size);
        bound += 128_KiB;
        break;
      default:
        throw error(errc::format, "the zstd frame has a block of an unknown type").at_offset(start);
    }
    if ((header & 1) != 0) return bound;
  }
}

}  // namespace penstock::inline v0_1::detail
