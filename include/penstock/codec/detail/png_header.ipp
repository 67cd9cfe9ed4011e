// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/png_header.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <array>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE bool begins_as_png(bytes_view bytes) noexcept {
  return bytes.size() >= png_signature.size() && text_of(bytes).starts_with(png_signature);
}

PENSTOCK_INLINE void refuse_png_as_text(bytes_view bytes) {
  const std::string_view text = text_of(bytes);
  if (png_signature.starts_with(text.substr(0, png_signature.size()))) return;
  for (const std::string_view begin : {"\x89PNG", "\x09PNG", "\xc2\x89PNG", "\xef\xbf\xbdPNG"})
    if (text.starts_with(begin))
      throw error(errc::format,
                  "this is a png image that was changed as if it were a text: its first bytes show it; copy "
                  "it again, as bytes")
          .at_offset(0);
}

namespace png {

inline constexpr std::size_t around_chunk = 12;  // length and type before its data, the checksum behind

inline constexpr std::uint32_t largest = 0x7fff'ffff;

[[nodiscard]] inline std::uint32_t number(bytes_view bytes, std::size_t at) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

[[nodiscard]] inline std::string_view type(bytes_view chunk) noexcept { return text_of(chunk.subspan(4, 4)); }

[[nodiscard]] constexpr bool possible(unsigned colour, unsigned depth) noexcept {
  switch (colour) {
    case 0:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case 3:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case 2:
    case 4:
    case 6:
      return depth == 8 || depth == 16;
    default:
      return false;
  }
}

}  // namespace png

PENSTOCK_INLINE png_header read_png_header(bytes_view bytes) {
  constexpr std::size_t data_bytes = 13;
  if (bytes.empty()) throw error(errc::format, "the png image is empty: it has no bytes");
  if (!begins_as_png(bytes)) {
    refuse_png_as_text(bytes);
    throw error(errc::format, "this is no png image: it does not begin as one").at_offset(0);
  }
  const bytes_view chunk = bytes.subspan(png_signature.size());
  if (chunk.size() < data_bytes + 8) throw error(errc::format, "the png image ends within its header");
  if (png::number(chunk, 0) != data_bytes || png::type(chunk) != "IHDR")
    throw error(errc::format, "the png image does not begin with a header").at_offset(8);
  png_header header;
  header.size = {png::number(chunk, 8), png::number(chunk, 12)};
  if (header.size.width > png::largest || header.size.height > png::largest)
    throw error(errc::format, {"the png image's header is damaged: it says ", header.size.width, " x ",
                               header.size.height, " pixels"})
        .at_offset(16);
  header.depth = std::to_integer<std::uint8_t>(chunk[16]);
  header.colour = std::to_integer<std::uint8_t>(chunk[17]);
  if (!png::possible(header.colour, header.depth))
    throw error(errc::format, {"the png image's header is damaged: there is no colour type ", header.colour,
                               " of ", header.depth, " bits"})
        .at_offset(24);
  const auto method = [&](std::size_t at) { return std::to_integer<unsigned>(chunk[at]); };
  if (method(18) != 0 || method(19) != 0 || method(20) > 1)
    throw error(errc::format,
                "the png image uses a method of compression, filtering or interlacing that is "
                "not in the standard")
        .at_offset(26);
  header.interlaced = method(20) == 1;
  return header;
}

PENSTOCK_INLINE std::uint32_t png_checksum(bytes_view bytes) noexcept {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t n = 0; n < made.size(); ++n) {
      std::uint32_t c = n;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb8'8320u ^ c >> 1 : c >> 1;
      made[n] = c;
    }
    return made;
  }();
  std::uint32_t c = 0xffff'ffffu;
  for (const std::byte b : bytes) c = table[(c ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ c >> 8;
  return ~c;
}

PENSTOCK_INLINE png_metadata png_metadata_of(bytes_view bytes) noexcept {
  constexpr std::size_t largest_exif = 1 << 16, largest_text = 1 << 20;
  png_metadata found;
  bytes_view rest = bytes.subspan(std::min(png_signature.size(), bytes.size()));
  while (rest.size() >= png::around_chunk) {
    const std::size_t length = png::number(rest, 0);
    if (length > rest.size() - png::around_chunk) break;
    const std::string_view type = png::type(rest);
    if (type == "IEND") break;
    if (type == "eXIf" && found.exif.empty() && length <= largest_exif && length != 0 &&
        png_checksum(rest.subspan(4, length + 4)) == png::number(rest, length + 8))
      found.exif = rest.subspan(8, length);
    if ((type == "tEXt" || type == "zTXt" || type == "iTXt") && length != 0 && length <= largest_text) {
      const std::string_view text = text_of(rest.subspan(8, length));
      const std::string_view keyword = text.substr(0, text.find('\0'));
      const bytes_view chunk = rest.first(length + png::around_chunk);
      if (found.profile.empty() && (keyword == "Raw profile type exif" || keyword == "Raw profile type APP1"))
        found.profile = chunk;
      if (found.xmp.empty() && keyword == "XML:com.adobe.xmp") found.xmp = chunk;
    }
    rest = rest.subspan(length + png::around_chunk);
  }
  return found;
}

PENSTOCK_INLINE std::string_view plain_png_text(bytes_view chunk, bool& compressed) noexcept {
  const std::string_view type = png::type(chunk);
  std::string_view text = text_of(chunk.subspan(8, chunk.size() - png::around_chunk));
  text.remove_prefix(std::min(text.size(), text.find('\0')));
  if (!text.empty()) text.remove_prefix(1);
  const bool international = type == "iTXt" && text.size() >= 2;
  compressed = type == "zTXt" || (international && text[0] != 0);
  if (compressed || png_checksum(chunk.subspan(4, chunk.size() - 8)) != png::number(chunk, chunk.size() - 4))
    return {};
  if (international) {  // the flag, the method, the language, and the keyword in it
    text.remove_prefix(2);
    for (int i = 0; i < 2; ++i) {
      const std::size_t end = text.find('\0');
      if (end == text.npos) return {};
      text.remove_prefix(end + 1);
    }
  }
  return text;
}

PENSTOCK_INLINE std::size_t decode_png_profile(std::string_view text, std::byte* into) noexcept {
  for (int i = 0; i < 3; ++i) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) return 0;
    text.remove_prefix(end + 1);
  }
  const auto digit = [](char c) -> unsigned {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
    return 16;
  };
  std::size_t count = 0;
  unsigned high = 16;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ') continue;
    const unsigned value = digit(c);
    if (value == 16) return 0;
    if (high == 16) {
      high = value;
    } else {
      into[count++] = static_cast<std::byte>(high << 4 | value);
      high = 16;
    }
  }
  return count;
}

PENSTOCK_INLINE png_filter::png_filter(bytes_view bytes) noexcept
    : rest_(bytes), passing_(std::min(png_signature.size(), bytes.size())) {}

PENSTOCK_INLINE bool png_filter::read(mutable_bytes into) noexcept {
  while (!into.empty()) {
    if (passing_ == 0) next_chunk();
    const std::size_t count = std::min(into.size(), passing_);
    if (count == 0) return false;
    std::memcpy(into.data(), rest_.data(), count);
    into = into.subspan(count);
    rest_ = rest_.subspan(count);
    passing_ -= count;
  }
  return true;
}

PENSTOCK_INLINE void png_filter::next_chunk() noexcept {
  while (rest_.size() >= png::around_chunk) {
    const std::size_t length = png::number(rest_, 0);
    const std::string_view type = png::type(rest_);
    const bool ancillary = (static_cast<unsigned char>(type[0]) & 0x20u) != 0;
    if (!ancillary || type == "tRNS" || length > png::largest) {
      passing_ = std::min(rest_.size(), length + png::around_chunk);
      return;
    }
    rest_ = rest_.subspan(std::min(rest_.size(), length + png::around_chunk));
  }
  passing_ = rest_.size();
}

}  // namespace penstock::inline v0_1::detail
