// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
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
[[nodiscard]] idx_file parse_idx(buffer bytes, std::string path, unsigned code, std::size_t number_bytes);

template <class T>
[[nodiscard]] idx_file parse_idx(buffer bytes, std::string path) {
  return parse_idx(std::move(bytes), std::move(path), idx_code<T>, sizeof(T));
}

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/idx_file.ipp>
#endif
