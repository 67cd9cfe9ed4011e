// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/packed_blob.hpp>

#include <penstock/core/known_formats.hpp>
#include <penstock/core/to_size.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE frame_reader::frame_reader(bytes_view packed, std::string_view frame)
    : packed_(packed), frame_(frame) {
  if (packed.empty())
    throw error(errc::format, {"there are no bytes, not even an empty ", name()}).at_offset(0);
}

PENSTOCK_INLINE std::uint64_t frame_reader::little(std::size_t bytes) {
  need(bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i)
    value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
  at_ += bytes;
  return value;
}

PENSTOCK_INLINE void frame_reader::skip(std::uint64_t bytes) {
  need(bytes);
  at_ += to_size(bytes);
}

PENSTOCK_INLINE std::uint32_t frame_reader::begin_frame() {
  const auto number = packed_.size() - at_ >= 4 ? static_cast<std::uint32_t>(little(4)) : 0;
  if ((number & ~15u) != skippable) return number;
  skip(little(4));
  return skippable;
}

PENSTOCK_INLINE void frame_reader::refuse_begin(std::size_t start) const {
  if (start == 0) throw not_a(frame_, packed_, {});
  throw error(errc::format, {"there is something after the last ", name()}).at_offset(start);
}

PENSTOCK_INLINE void frame_reader::check_dictionary(std::uint64_t dictionary, std::size_t start) const {
  if (dictionary != 0)
    throw error(errc::format,
                {"the ", name(), " needs dictionary ", dictionary, ", but dictionaries are not supported"})
        .at_offset(start);
}

PENSTOCK_INLINE void frame_reader::check_content(std::uint64_t content, std::uint64_t bound,
                                                 std::size_t start) const {
  if (content > bound)
    throw error(errc::format, {"the ", name(), " says that it holds ", content,
                               " bytes, but its blocks hold at most ", bound})
        .at_offset(start);
}

PENSTOCK_INLINE void frame_reader::need(std::uint64_t bytes) const {
  if (packed_.size() - at_ < bytes)
    throw error(errc::format, {"the ", name(), " is cut short"}).at_offset(packed_.size());
}

PENSTOCK_INLINE frames_extent zstd_frame_walk::run() {
  while (at_ < packed_.size()) frame();
  return found_;
}

PENSTOCK_INLINE void zstd_frame_walk::frame() {
  const std::size_t start = at_;
  const std::uint32_t number = begin_frame();
  if (number == skippable) return;
  if (number != magic) refuse_begin(start);
  const auto descriptor = static_cast<unsigned>(little(1));
  const bool single_segment = (descriptor & 0x20) != 0;
  if ((descriptor & 0x08) != 0)
    throw error(errc::format, "the zstd frame header has a reserved bit set").at_offset(start + 4);
  constexpr std::size_t dictionary_bytes[] = {0, 1, 2, 4};
  const std::size_t size_bytes[] = {single_segment ? std::size_t{1} : std::size_t{0}, 2, 4, 8};
  const std::size_t size_field = size_bytes[descriptor >> 6];
  if (!single_segment) skip(1);
  check_dictionary(little(dictionary_bytes[descriptor & 3]), start);
  std::uint64_t content = little(size_field);
  if (size_field == 2) content += 256;
  const std::uint64_t bound = blocks();
  if ((descriptor & 0x04) != 0) skip(4);
  if (size_field == 0)
    found_.known = false;
  else
    check_content(content, bound, start);
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

PENSTOCK_INLINE lz4_frame lz4_frame_walk::next() {
  const std::size_t start = at_;
  lz4_frame frame;
  const std::uint32_t number = begin_frame();
  frame.skippable = number == skippable;
  if (number == legacy)
    throw error(errc::format, "this is lz4's legacy format, which is not supported: pack it again with lz4")
        .at_offset(start);
  if (!frame.skippable) {
    if (number != magic) refuse_begin(start);
    read(frame, start);
  }
  frame.bytes = packed_.subspan(start, at_ - start);
  return frame;
}

PENSTOCK_INLINE frames_extent lz4_frame_walk::run() {
  frames_extent all;
  while (!done()) {
    const lz4_frame one = next();
    all.known = all.known && (one.known || one.skippable);
    all.content += one.content;  // no overflow: at most 255 times the size of the input
    all.bound += one.bound;
  }
  return all;
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
  if ((flags & 1) != 0) check_dictionary(little(4), start);
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
  if (frame.known) check_content(frame.content, frame.bound, start);
}

PENSTOCK_INLINE void beyond_unpack_limit(std::string_view format, const std::string& size,
                                         std::uint64_t limit) {
  throw error(errc::limit, {"the ", format, " content has ", size, " bytes, and the limit is ", limit,
                            "; raise it with ", format, "{.limit = ...}"});
}

}  // namespace penstock::inline v0_1::detail
