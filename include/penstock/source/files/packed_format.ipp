// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/packed_format.hpp>

#include <algorithm>
#include <array>

namespace penstock::inline v0_1::detail {

// Source: RFC 1950, section 2.2.
PENSTOCK_INLINE bool may_begin_zlib(bytes_view head) noexcept {
  if (head.size() < 2) return false;
  const auto method = std::to_integer<unsigned>(head[0]), flags = std::to_integer<unsigned>(head[1]);
  return (method & 15) == 8 && method >> 4 <= 7 && (256 * method + flags) % 31 == 0 && (flags & 32) == 0;
}

PENSTOCK_INLINE std::string_view compression_of(bytes_view head) noexcept {
  const auto starts = [&head](std::initializer_list<unsigned char> magic) {
    return head.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), head.begin(),
                      [](unsigned char m, std::byte b) { return std::byte{m} == b; });
  };
  // Skippable frames may precede the frames of zstd and lz4.
  bool skipped = false;
  while (head.size() >= 8 && (head[0] & std::byte{0xf0}) == std::byte{0x50} && head[1] == std::byte{0x2a} &&
         head[2] == std::byte{0x4d} && head[3] == std::byte{0x18}) {
    const std::uint64_t size = std::uint64_t{8} + load_little<std::uint32_t>(head.data() + 4);
    head = head.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(size, head.size())));
    skipped = true;
  }
  if (starts({0x04, 0x22, 0x4d, 0x18})) return "lz4";
  if (skipped || starts({0x28, 0xb5, 0x2f, 0xfd})) return "zstd";
  if (starts({0x1f, 0x8b})) return "gzip";
  if (starts({0x1f, 0x9d})) return "compress (.Z)";
  if (starts({0x42, 0x5a, 0x68})) return "bzip2";
  if (starts({0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00})) return "xz";
  if (starts({0x02, 0x21, 0x4c, 0x18})) return "lz4 (legacy)";
  if (starts({0x4c, 0x5a, 0x49, 0x50})) return "lzip";
  return {};
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

}  // namespace penstock::inline v0_1::detail
