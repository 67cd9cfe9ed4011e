// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/tar/tar_format.hpp>

#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

namespace penstock::inline v0_1 {
namespace detail::tar {

inline constexpr std::array<std::byte, 10240> zeros{};

// Where to cut a path into prefix and name; nothing if ustar cannot hold it. Zero: no prefix is needed.
PENSTOCK_INLINE std::optional<std::size_t> ustar_cut(std::string_view path) noexcept {
  if (path.size() <= 100) return 0;
  if (path.size() > 256) return std::nullopt;
  const std::size_t cut = path.rfind('/', 155);
  if (cut == std::string_view::npos || cut == 0 || path.size() - cut - 1 > 100 || cut + 1 == path.size())
    return std::nullopt;
  return cut;
}

PENSTOCK_INLINE void put_text(std::byte* block, std::size_t offset, std::size_t size,
                              std::string_view text) noexcept {
  std::memcpy(block + offset, text.data(), std::min(size, text.size()));
}

// Octal digits with leading zeros and a NUL at the end, as all tar programs write them.
PENSTOCK_INLINE void put_number(std::byte* block, std::size_t offset, std::size_t size,
                                std::uint64_t value) noexcept {
  for (std::size_t i = size - 1; i-- > 0; value >>= 3)
    block[offset + i] = static_cast<std::byte>('0' + (value & 7u));
}

PENSTOCK_INLINE void append_block(buffer& out, std::string_view prefix, std::string_view name,
                                  std::uint64_t size, char type, const tar_member_facts& facts) {
  std::array<std::byte, block_size> block{};
  put_text(block.data(), 0, 100, name);
  put_number(block.data(), 100, 8, facts.mode & 07777u);
  put_number(block.data(), 108, 8, 0);
  put_number(block.data(), 116, 8, 0);
  put_number(block.data(), 124, 12, size);
  put_number(block.data(), 136, 12, facts.mtime);
  block[156] = static_cast<std::byte>(type);
  put_text(block.data(), 257, 8, std::string_view("ustar\00000", 8));
  put_text(block.data(), 265, 31, facts.owner);
  put_text(block.data(), 297, 31, facts.group);
  put_number(block.data(), 329, 8, 0);
  put_number(block.data(), 337, 8, 0);
  put_text(block.data(), 345, 155, prefix);
  std::uint64_t sum = 8 * ' ';
  for (const std::byte b : block) sum += static_cast<unsigned char>(b);
  put_number(block.data(), 148, 7, sum);
  block[155] = std::byte{' '};
  out.append(block);
}

// `LENGTH KEY=VALUE\n`, where LENGTH counts itself.
PENSTOCK_INLINE std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + std::to_string(rest).size();
  if (std::to_string(length).size() != std::to_string(rest).size()) ++length;
  return detail::text({length, " ", key, "=", value, "\n"});
}

}  // namespace detail::tar

namespace detail {

PENSTOCK_INLINE bytes_view tar_padding_after(std::uint64_t size) noexcept {
  return bytes_view(tar::zeros).first(detail::to_size(tar::padded(size) - size));
}

PENSTOCK_INLINE std::array<bytes_view, 2> end_of_tar(std::uint64_t size) noexcept {
  const auto rest =
      detail::to_size((tar::zeros.size() - (size + 1024) % tar::zeros.size()) % tar::zeros.size());
  return {bytes_view(tar::zeros).first(1024), bytes_view(tar::zeros).first(rest)};
}

PENSTOCK_INLINE void append_tar_headers(buffer& out, std::string_view path, std::uint64_t size,
                                        const tar_member_facts& facts) {
  constexpr std::uint64_t max_in_octal = std::uint64_t{1} << 33;
  const auto cut = tar::ustar_cut(path);
  if (!cut || size >= max_in_octal) {
    std::string records;
    if (!cut) records += tar::pax_record("path", path);
    if (size >= max_in_octal) records += tar::pax_record("size", std::to_string(size));
    tar::append_block(out, "", "././@PaxHeader", records.size(), 'x', facts);
    out.append(bytes_of(records));
    out.append(tar_padding_after(records.size()));
  }
  const std::size_t at = cut.value_or(0);
  const std::string_view prefix = path.substr(0, at);
  const std::string_view name = at == 0 ? path : path.substr(at + 1);
  tar::append_block(out, prefix, name.substr(0, 100), size >= max_in_octal ? 0 : size, '0', facts);
}

}  // namespace detail
}  // namespace penstock::inline v0_1
