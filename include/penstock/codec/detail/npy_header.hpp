// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {
namespace detail {

/// The header of an npy file. `descr` is a view into the file.
struct npy_header {
  std::string_view descr;
  char order = '|';  // '<', '>', '=' or '|'
  char kind = 0;     // 'b', 'i', 'u', 'f' ...
  std::uint64_t item_size = 0;
  bool fortran = false;
  extents shape;
  std::size_t data_offset = 0;
};

/// Reads the preamble of an npy file, versions 1.0, 2.0 and 3.0. Does not check that the payload has the
/// size that the header gives.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
[[nodiscard]] npy_header read_npy_header(bytes_view file);

/// The number of bytes that the shape needs, checked for overflow by numpy's own rule: a length of zero
/// does not hide an overflow.
[[nodiscard]] std::uint64_t npy_payload(const npy_header& header);

/// The header of a complete npy file with this `kind` and item size, checked against the size of the
/// payload.
[[nodiscard]] npy_header whole_npy(bytes_view file, char kind, std::size_t item_size);

/// An npy file, version 1.0, as numpy itself writes it: `count` items with these bytes.
[[nodiscard]] std::vector<std::byte> npy_file(char kind, std::size_t item_size, const extents& shape,
                                              std::size_t count, bytes_view values);

}  // namespace detail
}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/detail/npy_header.ipp>
#endif
