// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/tar_header.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

namespace penstock::inline v0_1 {
namespace detail::tar {

PENSTOCK_INLINE std::string_view text_field(bytes_view block, std::size_t offset, std::size_t size) noexcept {
  const std::string_view field = text_of(block.subspan(offset, size));
  return field.substr(0, std::min(field.find('\0'), field.size()));
}

PENSTOCK_INLINE std::optional<std::uint64_t> number_field(bytes_view block, std::size_t offset,
                                                          std::size_t size) noexcept {
  const bytes_view field = block.subspan(offset, size);
  const auto first = static_cast<unsigned char>(field[0]);
  std::uint64_t value = 0;
  if ((first & 0x80u) != 0) {
    if (first == 0xffu) return std::nullopt;  // a negative number
    value = first & 0x7fu;
    for (std::size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  std::string_view digits = text_field(block, offset, size);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  for (const char c : digits) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3 | static_cast<std::uint64_t>(c - '0');  // twelve digits at most: cannot overflow
  }
  return value;
}

PENSTOCK_INLINE bool is_zero(bytes_view block) noexcept {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

PENSTOCK_INLINE bool checksum_matches(bytes_view block) noexcept {
  const auto stored = number_field(block, 148, 8);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(block.data());
  // loops without branches, which compilers vectorise
  std::uint32_t sum = 0, negative = 0;  // the sum of all bytes, and how many are negative as signed bytes
  for (std::size_t i = 0; i < block_size; ++i) {
    sum += bytes[i];
    negative += bytes[i] >> 7;
  }
  for (std::size_t i = 148; i < 156; ++i) {  // its own field counts as spaces
    sum -= bytes[i];
    negative -= bytes[i] >> 7;
  }
  const std::int64_t plain = std::int64_t{8 * ' '} + sum;
  const std::int64_t with_sign = plain - std::int64_t{256} * negative;
  return stored && (*stored == static_cast<std::uint64_t>(plain) ||
                    (with_sign >= 0 && *stored == static_cast<std::uint64_t>(with_sign)));
}

PENSTOCK_INLINE void header_path(bytes_view block, std::string& path) {
  path.clear();
  if (std::memcmp(block.data() + 257, "ustar\0", 6) == 0) {
    const bool star = std::memcmp(block.data() + 508, "tar\0", 4) == 0;
    path.assign(text_field(block, 345, star ? 131 : 155));
    if (!path.empty()) path += '/';
  }
  path += text_field(block, 0, 100);
}

PENSTOCK_INLINE void known_text::set(std::string_view value) {
  if (value.size() > longest_name)
    throw error(errc::format,
                {"a member has a name of ", value.size(), " bytes, and the maximum is ", longest_name});
  text.assign(value);
  known = true;
}

PENSTOCK_INLINE void pax_records::read(bytes_view body) {
  std::string_view rest = text_of(body);
  while (!rest.empty() && rest.front() != '\0') {
    std::uint64_t length = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (problem != std::errc{} || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
        rest[detail::to_size(length) - 1] != '\n') {
      throw error(errc::format, "a pax header holds a record whose length is wrong");
    }
    const std::string_view record = rest.substr(digits + 1, detail::to_size(length) - digits - 2);
    rest.remove_prefix(detail::to_size(length));
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw error(errc::format, "a pax header holds a record without a keyword");
    }
    take(record.substr(0, equals), record.substr(equals + 1));
  }
}

PENSTOCK_INLINE void pax_records::take(std::string_view key, std::string_view value) {
  if (key == "path" || key == "GNU.sparse.name") {
    auto& mine = key == "path" ? path : sparse_path;
    mine.known = false;
    if (value.empty()) return;
    while (!value.empty() && value.back() == '/') value.remove_suffix(1);
    mine.set(value);
  } else if (key == "size") {
    size.reset();
    if (value.empty()) return;
    std::uint64_t parsed = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (problem != std::errc{} || end != value.data() + value.size() ||
        parsed > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw error(errc::format, "a pax header gives a size that is not a number");
    }
    size = parsed;
  }
  // GNU tar's sparse files. With Solaris's SUN.holesdata the body is taken unchanged.
  if (!value.empty() && key.starts_with("GNU.sparse.")) sparse = true;
}

}  // namespace detail::tar

PENSTOCK_INLINE bool detail::begins_tar(bytes_view head, bool named_tar) noexcept {
  if (head.size() < tar::block_size) return false;
  const bytes_view block = head.first(tar::block_size);
  return tar::is_zero(block) ? named_tar : tar::checksum_matches(block);
}
}  // namespace penstock::inline v0_1
