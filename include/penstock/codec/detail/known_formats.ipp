// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/known_formats.hpp>

#include <penstock/codec/detail/png_header.hpp>
#include <penstock/codec/detail/webp_header.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string_view known_format(bytes_view bytes) noexcept {
  struct known {
    std::string_view begin, format;
    std::size_t at = 0;
  };
  using namespace std::string_view_literals;
  static constexpr known formats[] = {
      // Whole signatures, then shorter ones.
      {png_signature, "a PNG image"},
      {"\0\0\0\x0cJXL \r\n\x87\n"sv, "a JPEG XL image"},
      {"\0\0\0\x0cjP  \r\n\x87\n"sv, "a JPEG 2000 image"},
      {"GIF87a"sv, "a GIF image"},
      {"GIF89a"sv, "a GIF image"},
      {"\x93NUMPY"sv, "a NumPy array"},
      {"\xff\xd8\xff"sv, "a JPEG image"},
      {"\xff\x4f\xff\x51"sv, "a JPEG 2000 image"},
      {"II*\0"sv, "a TIFF image"},
      {"MM\0*"sv, "a TIFF image"},
      {"ftypavi"sv, "an AVIF image", 4},
      {"ftyphei"sv, "a HEIC image", 4},
      {"ftyphev"sv, "a HEIC image", 4},
      {"ftypmif1"sv, "a HEIC or AVIF image", 4},
      {"ftyp"sv, "a video or another MP4 file", 4},
      {"8BPS"sv, "a Photoshop image"},
      {"qoif"sv, "a QOI image"},
      {"v/1\x01"sv, "an OpenEXR image"},
      {"\0\0\1\0"sv, "an icon"},
      {"%PDF"sv, "a PDF document"},
      {"\x28\xb5\x2f\xfd"sv, "a zstd file"},
      {"PK\3\4"sv, "a zip archive"},
      {"RIFF"sv, "a RIFF file that is no image"},
      {"<svg"sv, "an SVG drawing"},
      {"<?xml"sv, "an XML text"},
      {"\xff\x0a"sv, "a JPEG XL image"},
      {"\x1f\x8b"sv, "a gzip file"},
  };
  const std::string_view text = text_of(bytes);
  if (begins_as_webp(bytes)) return "a WebP image";
  if (text.starts_with("\x89PNG") && png_signature.starts_with(text)) return "the beginning of a PNG image";
  for (const known& f : formats)
    if (text.size() >= f.at + f.begin.size() && text.substr(f.at, f.begin.size()) == f.begin) return f.format;
  if (text.starts_with("BM") && text.size() > 17 && text.substr(15, 3) == std::string_view("\0\0\0", 3))
    return "a BMP image";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
      (text[2] == '\n' || text[2] == ' '))
    return "a PNM image";
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  std::string_view word = text.substr(first);
  const auto begins = [&](std::string_view lower) {
    return word.size() >= lower.size() &&
           std::equal(lower.begin(), lower.end(), word.begin(), [](char a, char b) {
             return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
           });
  };
  if (begins("<!doctype html") || begins("<html") || begins("<head"))
    return "a web page, perhaps an error message of the server that it came from";
  return {};
}

PENSTOCK_INLINE void refuse_image_format(bytes_view bytes, std::initializer_list<std::string_view> codecs) {
  if (bytes.empty()) throw error(errc::format, "the image is empty: it has no bytes");
  refuse_png_as_text(bytes);
  const std::string names = list_text("", codecs, ", ", "");
  if (const std::string_view known = known_format(bytes); !known.empty())
    throw error(errc::format, {"this is ", known, ", and the formats that are decoded here are: ", names})
        .at_offset(0);
  std::string begin;
  constexpr std::string_view digits = "0123456789abcdef";
  for (const std::byte b : bytes.first(std::min<std::size_t>(bytes.size(), 8))) {
    begin += ' ';
    begin += digits[std::to_integer<unsigned>(b) >> 4];
    begin += digits[std::to_integer<unsigned>(b) & 15];
  }
  throw error(errc::format, {"this is no image of a known format: it begins with the bytes", begin,
                             ", and the formats that are decoded here are: ", names})
      .at_offset(0);
}

}  // namespace penstock::inline v0_1::detail
