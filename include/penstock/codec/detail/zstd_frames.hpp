// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

/// What the frames of a zstd payload say about its content, before any of it is decompressed.
struct zstd_extent {
  std::uint64_t content = 0;  // the sum of the sizes that the frames name; meaningful where `known`
  std::uint64_t bound = 0;    // what their blocks can hold at most
  bool known = true;          // whether each frame names its size
};

/// Walks the frames of a payload, block by block, without decompressing. It costs some nanoseconds for 128
/// KiB of content, and gives what no header can fake: an upper bound, so that a lie about the size allocates
/// nothing.
/// Source: RFC 8878, sections 3.1.1 and 3.1.2.
class zstd_frame_walk {
 public:
  explicit zstd_frame_walk(bytes_view packed) noexcept : packed_(packed) {}

  [[nodiscard]] zstd_extent run() {
    if (packed_.empty())
      throw error(errc::format, "there are no bytes, not even an empty zstd frame").at_offset(0);
    while (at_ < packed_.size()) frame();
    return found_;
  }

 private:
  static constexpr std::uint32_t magic = 0xfd2fb528u;
  static constexpr std::uint32_t skippable = 0x184d2a50u;  // the last four bits are free

  [[nodiscard]] std::uint64_t little(std::size_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::to_integer<std::uint64_t>(packed_[at_ + i]) << (8 * i);
    at_ += bytes;
    return value;
  }
  void skip(std::uint64_t bytes) {
    if (packed_.size() - at_ < bytes)
      throw error(errc::format, "the zstd frame is cut short").at_offset(packed_.size());
    at_ += static_cast<std::size_t>(bytes);
  }

  void frame() {
    const std::size_t start = at_;
    const bool begins = packed_.size() - at_ >= 4;
    const auto number = begins ? static_cast<std::uint32_t>(little(4)) : 0;
    if ((number & ~15u) == skippable) return skip(little(4));
    if (number != magic)
      throw error(errc::format,
                  start == 0 ? "this is not a zstd frame" : "there is something after the last zstd frame")
          .at_offset(start);
    const auto descriptor = static_cast<unsigned>(little(1));
    const bool single_segment = (descriptor & 0x20) != 0;
    if ((descriptor & 0x08) != 0)
      throw error(errc::format, "the zstd frame header has a reserved bit set").at_offset(start + 4);
    constexpr std::size_t dictionary_bytes[] = {0, 1, 2, 4};
    const std::size_t size_bytes[] = {single_segment ? std::size_t{1} : std::size_t{0}, 2, 4, 8};
    const std::size_t size_field = size_bytes[descriptor >> 6];
    if (!single_segment) skip(1);
    if (const std::uint64_t dictionary = little(dictionary_bytes[descriptor & 3]); dictionary != 0)
      throw error(errc::format, {"the zstd frame needs dictionary ", dictionary, ", and none is supported"})
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

  [[nodiscard]] std::uint64_t blocks() {
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

  bytes_view packed_;
  std::size_t at_ = 0;
  zstd_extent found_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
