// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/known_formats.hpp>

#include <string>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE std::string_view known_format(bytes_view bytes) noexcept {
  struct known {
    std::string_view begin, format;
    std::size_t at = 0;
  };
  using namespace std::string_view_literals;
  constexpr std::string_view signature_of_png = "\x89PNG\r\n\x1a\n"sv;
  static constexpr known formats[] = {
      // Whole signatures, then shorter ones.
      {"version https://git-lfs.github.com/spec/"sv,
       "a Git LFS pointer, which stands for the file: fetch that with git lfs pull"},
      {"SQLite format 3\0"sv, "an SQLite database"},
      {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
      {"\3757zXZ\0"sv, "an xz file"},
      {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
      {"ARROW1"sv, "an Arrow file"},
      {"1AY&SY"sv, "a bzip2 file", 4},
      {"PAR1"sv, "a Parquet file"},
      {"PARE"sv, "an encrypted Parquet file"},
      {"Obj\1"sv, "an Avro file"},
      {"\x04\x22\x4d\x18"sv, "an lz4 file"},
      {"ustar"sv, "a tar archive", 257},
      {signature_of_png, "a PNG image"},
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
      {"<?xml"sv, "an XML text, perhaps an error message of the server that it came from"},
      {"\xff\x0a"sv, "a JPEG XL image"},
      {"\x1f\x8b"sv, "a gzip file"},
  };
  const std::string_view text = text_of(bytes);
  if (text.starts_with("RIFF") && text.size() >= 12 && text.substr(8, 4) == "WEBP") return "a WebP image";
  if (text.starts_with("\x89PNG") && signature_of_png.starts_with(text))
    return "the beginning of a PNG image";
  for (const known& f : formats)
    if (text.size() >= f.at + f.begin.size() && text.substr(f.at, f.begin.size()) == f.begin) return f.format;
  if (text.starts_with("BM") && text.size() > 17 && text.substr(15, 3) == std::string_view("\0\0\0", 3))
    return "a BMP image";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
      (text[2] == '\n' || text[2] == ' '))
    return "a PNM image";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const std::string_view word = first < text.size() ? text.substr(first) : std::string_view();
  const auto begins = [&](std::string_view lower) {
    for (std::size_t i = 0; i < lower.size(); ++i) {
      const char c = i < word.size() ? word[i] : '\0';
      if (lower[i] != (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c)) return false;
    }
    return true;
  };
  if (begins("<!doctype html") || begins("<html") || begins("<head"))
    return "an HTML page, perhaps an error message or a login of the server that it came from";
  if (word.starts_with("{\"")) return "a JSON text, perhaps an error message of the server that it came from";
  return {};
}

PENSTOCK_INLINE error not_a(std::string_view wanted, bytes_view head, std::initializer_list<piece> why) {
  const std::string_view known = known_format(head);
  // a damaged file of the wanted format is not told to be what it is
  if (!known.empty() && known != wanted)
    return error(errc::format, {"this is not ", wanted, ": it is ", known}).at_offset(0);
  const std::string reason = text(why);
  return error(errc::format, {"this is not ", wanted, reason.empty() ? "" : ": ", reason}).at_offset(0);
}

}  // namespace penstock::inline v0_1::detail
