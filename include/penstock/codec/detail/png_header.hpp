// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/image/pixels.hpp>

/// The facts in a PNG's chunks that do not need a decoder. Source: Portable Network Graphics (PNG)
/// Specification, third edition (W3C), clauses 5 and 11.
namespace penstock::inline v0_1::detail {

inline constexpr std::string_view png_signature{"\x89PNG\r\n\x1a\n", 8};

struct png_header {
  image_size size;  ///< as stored
  std::uint8_t depth = 0;
  std::uint8_t colour = 0;  ///< 0 gray, 2 RGB, 3 palette, 4 gray with alpha, 6 RGBA
  bool interlaced = false;
};

[[nodiscard]] bool begins_as_png(bytes_view bytes) noexcept;

/// Throws `errc::format` for a PNG that a program took for a text: other line ends, or its first byte as the
/// program's character set has it. The signature was chosen to show this.
void refuse_png_as_text(bytes_view bytes);

/// The first chunk. Throws `errc::format` if these are no bytes of a PNG, or its header is damaged or cut
/// off.
[[nodiscard]] png_header read_png_header(bytes_view bytes);

/// The chunks of a PNG that may say how the image is turned, each the first one of its kind; empty if there
/// is none.
struct png_metadata {
  bytes_view exif;     ///< the data of eXIf, whose checksum is right
  bytes_view profile;  ///< a whole chunk of text: EXIF in hexadecimal, as ImageMagick writes it
  bytes_view xmp;      ///< a whole chunk of text
};

/// The checksum of PNG's chunks. Source: the specification's annex D.
[[nodiscard]] std::uint32_t png_checksum(bytes_view bytes) noexcept;

/// Looks at the chunks' first bytes only.
[[nodiscard]] png_metadata png_metadata_of(bytes_view bytes) noexcept;

/// What a chunk of text says, if it is not compressed and its checksum is right; `compressed` says whether it
/// is.
[[nodiscard]] std::string_view plain_png_text(bytes_view chunk, bool& compressed) noexcept;

/// The bytes that a profile has in hexadecimal, after its name and its length, each on a line. Writes them to
/// `into`, which has room for half as many bytes as the text has; returns how many they are.
[[nodiscard]] std::size_t decode_png_profile(std::string_view text, std::byte* into) noexcept;

/// Passes on the bytes of a PNG that matter to its pixels: without the ancillary chunks except tRNS, so that
/// a damaged profile or a text of a gigabyte costs nothing.
class png_filter {
 public:
  explicit png_filter(bytes_view bytes) noexcept;
  /// Copies the next `into.size()` bytes; returns false if there are fewer.
  [[nodiscard]] bool read(mutable_bytes into) noexcept;

 private:
  void next_chunk() noexcept;

  bytes_view rest_;
  std::size_t passing_;  // bytes of `rest_` that need no look
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/png_header.ipp>
#endif
