// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/png_header.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>

#include <algorithm>

namespace penstock::inline v0_1::detail {

/// Throws `errc::format`: the bytes are of none of the formats of these codecs. Says of which they are, or
/// how they begin.
[[noreturn, gnu::cold]] void refuse_image_format(bytes_view bytes,
                                                 std::initializer_list<std::string_view> codecs);

inline void refuse_image_format(bytes_view bytes, std::initializer_list<std::string_view> codecs) {
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
