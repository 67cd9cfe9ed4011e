// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/tensor.hpp>

#include <array>
#include <cstring>
#include <vector>

namespace penstock::inline v0_1::detail {

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

/// The header of the npy file that a worker read last. The files of a dataset mostly have the same header,
/// which then costs a comparison.
class npy_memo {
 public:
  /// The header of a complete file, if its size and header are those of the last one, else null.
  [[nodiscard]] const npy_header* find(bytes_view file) const noexcept {
    const bool same = size_ == file.size() && size_ != 0 &&
                      std::memcmp(file.data(), bytes_.data(), last_header_.data_offset) == 0;
    return same ? &last_header_ : nullptr;
  }
  /// Keeps what `whole_npy` returned for a file, and returns it.
  const npy_header& keep(bytes_view file, const npy_header& header) noexcept {
    last_header_ = header;
    last_header_.descr = {};
    const bool fits = header.data_offset <= bytes_.size();
    if (fits) std::memcpy(bytes_.data(), file.data(), header.data_offset);
    size_ = fits ? file.size() : 0;
    return last_header_;
  }

 private:
  npy_header last_header_;
  std::array<std::byte, 256> bytes_{};
  std::size_t size_ = 0;
};

/// An npy file, version 1.0, as numpy itself writes it: `count` items with these bytes.
[[nodiscard]] std::vector<std::byte> npy_file(char kind, std::size_t item_size, const extents& shape,
                                              std::size_t count, bytes_view values);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/npy_header.ipp>
#endif
