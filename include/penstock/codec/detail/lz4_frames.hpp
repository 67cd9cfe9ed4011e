// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

/// One frame of an lz4 payload, before any of it is decompressed.
struct lz4_frame {
  bytes_view bytes;           // all of it
  bool skippable = false;     // without content
  bool known = false;         // whether it names the size of its content
  std::uint64_t content = 0;  // that size
  std::uint64_t bound = 0;    // what its blocks can hold at most
};

/// Walks the frames of a payload, block by block, without decompressing. It costs some nanoseconds for a
/// block, and gives what no header can fake: an upper bound, so that a lie about the size allocates nothing.
/// Source: LZ4 Frame Format Description, versions 1.5.1 to 1.6.4.
class lz4_frame_walk {
 public:
  explicit lz4_frame_walk(bytes_view packed) : packed_(packed) {
    if (packed.empty())
      throw error(errc::format, "there are no bytes, not even an empty lz4 frame").at_offset(0);
  }

  [[nodiscard]] bool done() const noexcept { return at_ == packed_.size(); }

  [[nodiscard]] lz4_frame next() {
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
      throw error(errc::format,
                  start == 0 ? "this is not an lz4 frame" : "there is something after the last lz4 frame")
          .at_offset(start);
    }
    frame.bytes = packed_.subspan(start, at_ - start);
    return frame;
  }

 private:
  static constexpr std::uint32_t magic = 0x184d2204u;
  static constexpr std::uint32_t legacy = 0x184c2102u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are free

  [[nodiscard]] std::uint64_t little(std::size_t bytes) {
    need(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  void skip(std::uint64_t bytes) {
    need(bytes);
    at_ += static_cast<std::size_t>(bytes);
  }
  void need(std::uint64_t bytes) const {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the lz4 frame is cut short").at_offset(packed_.size());
  }

  void read(lz4_frame& frame, std::size_t start) {
    const std::uint64_t flags = little(1);
    const std::uint64_t block = little(1);
    if (flags >> 6 != 1)
      throw error(errc::format, {"the lz4 frame has version ", flags >> 6, ", and only version 1 is known"})
          .at_offset(start + 4);
    const std::uint64_t code = block >> 4;
    if ((flags & 2) != 0 || (block & 0x0f) != 0 || code < 4 || code > 7)
      throw error(errc::format, "the lz4 frame header has a reserved bit set").at_offset(start + 4);
    const std::uint64_t most = std::uint64_t{1} << (8 + 2 * code);  // 64 KiB to 4 MiB
    frame.known = (flags & 8) != 0;
    if (frame.known) frame.content = little(8);
    if ((flags & 1) != 0) {
      if (const std::uint64_t dictionary = little(4); dictionary != 0)
        throw error(errc::format, {"the lz4 frame needs dictionary ", dictionary, ", and none is supported"})
            .at_offset(start);
    }
    skip(1);  // the checksum of the header, which the library compares
    for (;;) {
      const std::size_t at = at_;
      const std::uint64_t header = little(4);
      if (header == 0) break;
      const std::uint64_t size = header & 0x7fffffffu;
      if (size > most)
        throw error(errc::format, "the lz4 frame has a block that is larger than it says").at_offset(at);
      skip(size);
      // no byte of a packed block stands for more than 255
      frame.bound += (header >> 31) != 0 ? size : std::min(most, 255 * size);
      if ((flags & 16) != 0) skip(4);
    }
    if ((flags & 4) != 0) skip(4);
    if (frame.known && frame.content > frame.bound)
      throw error(errc::format, {"the lz4 frame says that it holds ", frame.content,
                                 " bytes, but its blocks hold at most ", frame.bound})
          .at_offset(start);
  }

  bytes_view packed_;
  std::size_t at_ = 0;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
