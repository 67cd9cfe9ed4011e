// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/detail/packed_format.hpp>

#include <array>
#include <cstddef>

namespace penstock::inline v0_1::detail::tar {

// Source: RFC 1950, section 2.2.
PENSTOCK_INLINE bool may_begin_zlib(bytes_view head) noexcept {
  if (head.size() < 2) return false;
  const auto method = std::to_integer<unsigned>(head[0]), flags = std::to_integer<unsigned>(head[1]);
  return (method & 15) == 8 && method >> 4 <= 7 && (256 * method + flags) % 31 == 0 && (flags & 32) == 0;
}

PENSTOCK_INLINE packed_format packed_format_of(std::string_view format) noexcept {
  constexpr std::array<packed_format, 8> known{{{"gzip", "zlib", "unpack_gzip"},
                                                {"zlib", "zlib", "unpack_zlib"},
                                                {"zstd", "zstd", "unpack_zstd"},
                                                {"lz4", "lz4", "unpack_lz4"},
                                                {"bzip2", "bz2", "unpack_bzip2"},
                                                {"xz", "xz", "unpack_xz"},
                                                {"brotli", "brotli", "unpack_brotli"},
                                                {"snappy", "snappy", "unpack_snappy"}}};
  for (const packed_format& row : known) {
    if (row.format == format) return row;
  }
  return {};
}

PENSTOCK_INLINE std::string packed_advice(std::string_view format, std::string_view before,
                                          std::string_view after) {
  std::string text = "the file is compressed with " + std::string(format);
  const packed_format row = packed_format_of(format);
  if (row.format.empty())
    return text + ", for which there is no unpacker; compress it with gzip, zstd, lz4, bzip2 or xz";
  text.append(": link penstock::").append(row.component).append(", include <penstock/codec/");
  text.append(row.unpacker).append(".hpp> and write ").append(before).append(row.unpacker);
  return text.append(after);
}

}  // namespace penstock::inline v0_1::detail::tar
