// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tables/deletion_vector_file.hpp>

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <span>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

/// CRC-32 of gzip. Deletion vectors are read once per plan, so that a table would gain nothing.
[[nodiscard]] PENSTOCK_INLINE std::uint32_t deletion_vector_checksum(bytes_view bytes) noexcept {
  std::uint32_t sum = 0xffffffff;
  for (const std::byte one : bytes) {
    sum ^= std::to_integer<std::uint32_t>(one);
    for (int i = 0; i < 8; ++i) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320u : 0u);
  }
  return ~sum;
}

PENSTOCK_INLINE std::vector<std::byte> deletion_vector_in_file(session_view session, object_id file,
                                                               std::string_view magic, std::uint64_t offset,
                                                               std::uint64_t size) {
  constexpr std::uint64_t beside = 8, maximum = std::uint64_t{1} << 31;
  const std::uint64_t length = session.size(file);
  std::string begin(std::min<std::uint64_t>(length, magic.size()), '\0');
  session.read(file, 0, std::as_writable_bytes(std::span(begin)));
  if (begin != magic)
    throw error(errc::format, "the file is no file of deletion vectors, or one of a format that is not known")
        .at_offset(0);
  const auto none_there = [&] {
    return error(errc::format, "the file has no deletion vector of that size there").at_offset(offset);
  };
  if (size >= maximum || offset > length || length - offset < size + beside) throw none_there();
  // A file may have those of thousands of data files.
  std::vector<std::byte> all(to_size(size + beside));
  session.read(file, offset, all);
  const auto big = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(all[at + i]);
    return value;
  };
  if (big(0) != size) throw none_there();
  const std::uint32_t sum = big(all.size() - 4);
  all.erase(all.begin(), all.begin() + 4);
  all.resize(to_size(size));
  if (deletion_vector_checksum(all) != sum)
    throw error(errc::checksum, "the deletion vector has another checksum: the file is damaged")
        .at_offset(offset);
  return all;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
