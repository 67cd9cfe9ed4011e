// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/codec/pixels.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>
#include <penstock/image/image_limits.hpp>
#include <penstock/image/lazy_image.hpp>
#include <penstock/image/pixels.hpp>

#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {

/// Where the pixels of an npy file are, and how many.
struct npy_pixels {
  image_size size;
  std::size_t offset = 0;
};

/// Reads and checks the header of an npy file that is to be an image of this many channels of unsigned
/// numbers.
[[nodiscard]] npy_pixels read_npy_pixels(bytes_view file, std::size_t item_size, std::size_t channels,
                                         const image_limits& limits);

/// Whether these are the first bytes of an npy file.
[[nodiscard]] bool begins_as_npy(bytes_view bytes) noexcept;

}  // namespace detail

/// Raw pixels in numpy's `.npy` format: an array of shape (height, width, channels), or (height, width) if
/// `Format` has one channel, of uint8, or uint16 in the order of bytes of this machine.
///
/// As one of the codecs of `image_of`, it lets a dataset have compressed and raw images side by side.
///
/// In: any byte element. Out: a `lazy_image`, without a copy: a crop reads the bytes of the crop.
/// Kind: pointwise, keeps all guarantees. Cost: 0.3 us for the header; no allocation once the scratch has
/// grown, which only misaligned pixels of 16 bits need. Thread-safe, with a scratch per thread.
/// Throws `errc::format` for what is no npy file, or damaged, of another dtype or byte order, or of Fortran
/// order; `errc::shape` for another number of dimensions or channels; `errc::limit` for sizes beyond
/// `limits`.
/// Source: numpy, "A simple file format for NumPy arrays" (numpy/lib/format.py).
///
///     using raw = npy_image;
///     auto pictures = directory("pictures") | decode<image_of<raw>>;
///     auto depths = directory("depths") | decode<npy_image_as<gray16>>;
template <pixel_format Format>
struct npy_image_as {
  image_limits limits{};

  static constexpr std::string_view codec_name = "npy_image";
  static constexpr std::string_view extensions[] = {"npy"};
  using scratch = image_scratch;

  /// Whether these are the first bytes of an npy file.
  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept { return detail::begins_as_npy(bytes); }

  template <byte_element Bytes>
  [[nodiscard]] raw_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view bytes = as_bytes(in);
    const detail::npy_pixels found =
        detail::read_npy_pixels(bytes, sizeof(typename Format::value_type), Format::channels, limits);
    return {s, bytes.subspan(found.offset), found.size, false};
  }
};

/// Raw pixels of red, green and blue, 8 bits each.
using npy_image = npy_image_as<rgb8>;

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/npy_image.ipp>
#endif
