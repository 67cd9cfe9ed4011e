// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/image/orientation.hpp>

#include <algorithm>

/// The facts in a WebP's chunks that do not need a decoder. Source: RFC 9649.
namespace penstock::inline v0_1::detail {

/// Whether the bytes begin as a RIFF file of the kind WEBP.
[[nodiscard]] inline bool begins_as_webp(bytes_view bytes) noexcept {
  const std::string_view text = text_of(bytes);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP";
}

/// The orientation in the EXIF chunk, or otherwise in the XMP chunk; `upright` without one.
[[nodiscard]] inline orientation webp_orientation(bytes_view encoded) noexcept {
  constexpr std::size_t file_header = 12, chunk_header = 8;
  metadata_orientation turn;
  bytes_view rest = encoded.size() < file_header ? bytes_view() : encoded.subspan(file_header);
  while (rest.size() >= chunk_header) {
    const std::string_view type = text_of(rest.first(4));
    const std::size_t length = load_little<std::uint32_t>(rest.data() + 4);
    rest = rest.subspan(chunk_header);
    if (length > rest.size()) break;
    if (type == "EXIF") turn.exif(rest.first(length));
    if (type == "XMP " && length != 0) turn.xmp(text_of(rest.first(length)));
    const std::size_t padded = length + length % 2;
    if (padded > rest.size()) break;
    rest = rest.subspan(padded);
  }
  return turn.found();
}

/// The first frame of an animation.
struct webp_frame {
  bytes_view data;  ///< its chunks of pixels, which libwebp decodes as an image
  image_part at;    ///< its place on the canvas
};
/// Throws `errc::format` if there is no frame, or it is cut off or not within the canvas. With `recover`,
/// what is left of the last chunk counts.
[[nodiscard]] inline webp_frame first_webp_frame(bytes_view encoded, const image_size& canvas, bool recover) {
  constexpr std::size_t file_header = 12, chunk_header = 8, frame_header = 16;
  const auto number = [](bytes_view bytes, std::size_t at) {
    return std::to_integer<std::uint32_t>(bytes[at]) | std::to_integer<std::uint32_t>(bytes[at + 1]) << 8 |
           std::to_integer<std::uint32_t>(bytes[at + 2]) << 16;
  };
  bytes_view rest = encoded.size() < file_header ? bytes_view() : encoded.subspan(file_header);
  while (rest.size() >= chunk_header) {
    const std::string_view type = text_of(rest.first(4));
    std::size_t length = load_little<std::uint32_t>(rest.data() + 4);
    rest = rest.subspan(chunk_header);
    const bool cut = length > rest.size();
    if (type == "ANMF" && length >= frame_header && rest.size() >= frame_header && (!cut || recover)) {
      length = std::min(length, rest.size());
      const image_part at{number(rest, 0) * 2, number(rest, 3) * 2, number(rest, 6) + 1, number(rest, 9) + 1};
      if (!at.within(canvas))
        throw error(errc::format, "the webp image is damaged: its first frame is not within its canvas");
      return {rest.subspan(frame_header, length - frame_header), at};
    }
    const std::size_t padded = length + length % 2;
    if (cut || padded > rest.size()) break;
    rest = rest.subspan(padded);
  }
  throw error(errc::format, "the webp image is truncated: it ends before its first frame does");
}

}  // namespace penstock::inline v0_1::detail
