// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <utility>

namespace penstock::inline v0_1::detail {

/// The code of type `T` in IDX files, or 0 if they have none.
template <class T>
inline constexpr unsigned idx_code = std::same_as<T, std::uint8_t>   ? 0x08
                                     : std::same_as<T, std::int8_t>  ? 0x09
                                     : std::same_as<T, std::int16_t> ? 0x0b
                                     : std::same_as<T, std::int32_t> ? 0x0c
                                     : std::same_as<T, float>        ? 0x0d
                                     : std::same_as<T, double>       ? 0x0e
                                                                     : 0;

/// Reads one big-endian number of a file.
template <class T>
[[nodiscard]] T idx_number(const std::byte* at) noexcept {
  std::array<std::byte, sizeof(T)> item;
  std::memcpy(item.data(), at, sizeof(T));
  if constexpr (sizeof(T) > 1 && std::endian::native == std::endian::little)
    std::reverse(item.begin(), item.end());
  return std::bit_cast<T>(item);
}

/// A whole IDX file in memory, with its header checked against its size.
struct idx_file {
  buffer bytes;
  std::string path;
  std::uint64_t rows = 0;
  extents row;
  std::size_t first = 0;  // where the numbers begin
  std::size_t row_bytes = 0;

  [[nodiscard]] const std::byte* row_at(std::uint64_t index) const noexcept {
    return bytes.data() + first + detail::to_size(index) * row_bytes;
  }
};

/// Parses an IDX file whose numbers have this code and size; throws `errc::format` unless the header matches
/// them exactly.
/// Source: the page of the MNIST database (LeCun, Cortes, Burges), "the IDX file format".
[[nodiscard]] inline idx_file parse_idx(buffer bytes, std::string path, unsigned code,
                                        std::size_t number_bytes) {
  const auto fail = [&path](std::string what, std::uint64_t offset) -> error {
    return error(errc::format, std::move(what)).in_file(path).at_offset(offset);
  };
  const bytes_view all = bytes.view();
  const auto octet = [&](std::size_t i) { return std::to_integer<unsigned>(all[i]); };
  if (all.size() >= 2 && octet(0) == 0x1f && octet(1) == 0x8b)
    throw fail("the file is compressed with gzip: read it with idx_gz, of penstock::gzip", 0);
  if (all.size() < 4 || octet(0) != 0 || octet(1) != 0)
    throw not_a("an IDX file", all, {"it does not begin with two zeros"}).in_file(path);
  if (octet(2) != code) {
    constexpr char hex[] = "0123456789abcdef";
    const auto two = [&](unsigned number) { return text({"0x", hex[number >> 4], hex[number & 15]}); };
    throw fail("the IDX file holds numbers of type " + two(octet(2)) + ", but " + two(code) +
                   " was asked for; see idx<T>",
               2);
  }
  const std::size_t rank = octet(3);
  if (rank == 0 || rank > extents::max_rank)
    throw fail("the IDX header says " + std::to_string(rank) + " dimensions, and from 1 to " +
                   std::to_string(extents::max_rank) + " are supported",
               3);
  const std::size_t first = 4 + 4 * rank;
  if (all.size() < first) throw fail("the IDX file ends within its header", all.size());
  // saturates above the size of any file: the product of eight 32-bit lengths may exceed 64 bits
  const auto times = [](std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t maximum = std::uint64_t{1} << 63;
    return b != 0 && a > maximum / b ? maximum : a * b;
  };
  idx_file file;
  file.rows = idx_number<std::uint32_t>(all.data() + 4);
  std::uint64_t row_bytes = number_bytes;
  for (std::size_t i = 1; i < rank; ++i) {
    const std::uint64_t length = idx_number<std::uint32_t>(all.data() + 4 + 4 * i);
    file.row.push_back(length);
    row_bytes = times(row_bytes, length);
  }
  const std::uint64_t expected = times(row_bytes, file.rows);
  const std::uint64_t present = all.size() - first;
  if (expected != present)
    throw fail("the IDX header says " + std::to_string(file.rows) + " rows of shape " + to_string(file.row) +
                   ", but " + std::to_string(present) + " bytes follow it",
               first);
  file.first = first;
  file.row_bytes = detail::to_size(row_bytes);
  file.bytes = std::move(bytes);
  file.path = std::move(path);
  return file;
}

template <class T>
[[nodiscard]] idx_file parse_idx(buffer bytes, std::string path) {
  return parse_idx(std::move(bytes), std::move(path), idx_code<T>, sizeof(T));
}

}  // namespace penstock::inline v0_1::detail
