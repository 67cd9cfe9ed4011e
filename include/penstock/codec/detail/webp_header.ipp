// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/webp_header.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE bool begins_as_webp(bytes_view bytes) noexcept {
  const std::string_view text = text_of(bytes);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WEBP";
}

PENSTOCK_INLINE orientation webp_orientation(bytes_view encoded) noexcept {
  constexpr std::size_t file_header = 12, chunk_header = 8;
  constexpr std::string_view prefix("Exif\0\0", 6);
  bytes_view rest = encoded.size() < file_header ? bytes_view() : encoded.subspan(file_header);
  while (rest.size() >= chunk_header) {
    const std::string_view type = text_of(rest.first(4));
    const std::size_t length = load_little<std::uint32_t>(rest.data() + 4);
    rest = rest.subspan(chunk_header);
    if (length > rest.size()) break;
    if (type == "EXIF") {
      bytes_view exif = rest.first(length);
      if (text_of(exif).starts_with(prefix)) exif = exif.subspan(prefix.size());
      return exif_orientation(exif);
    }
    const std::size_t padded = length + length % 2;
    if (padded > rest.size()) break;
    rest = rest.subspan(padded);
  }
  return orientation::upright;
}

}  // namespace penstock::inline v0_1::detail
