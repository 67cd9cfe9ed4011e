// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/npy.hpp>
#include <penstock/codec/pixels.hpp>
#include <penstock/image/image_limits.hpp>

#include <limits>

namespace penstock::inline v0_1 {

namespace detail {

struct npy_pixels {
  image_size size;
  std::size_t offset = 0;
};

/// Reads and checks the header of an npy file that is to be an image of this many channels of unsigned
/// numbers.
[[nodiscard]] inline npy_pixels read_npy_pixels(bytes_view file, std::size_t item_size, std::size_t channels,
                                                const image_limits& limits) {
  const npy_header header = whole_npy(file, 'u', item_size);
  constexpr char foreign = std::endian::native == std::endian::little ? '>' : '<';
  if (item_size > 1 && header.order == foreign)
    throw error(errc::format, {"the npy image has dtype '", header.descr,
                               "', which is not the order of bytes of this machine: save it with "
                               "array.astype('u",
                               item_size, "')"})
        .at_offset(8);
  const extents& shape = header.shape;
  const bool flat = channels == 1 && shape.rank() == 2;
  if (!flat && (shape.rank() != 3 || shape[2] != channels))
    throw error(errc::shape,
                {"the npy file has shape ", to_string(shape), ", and an image has (height, width, ", channels,
                 channels == 1 ? ") or (height, width)" : ")"});
  constexpr std::uint64_t maximum = std::numeric_limits<std::uint32_t>::max();
  if (std::max(shape[0], shape[1]) > maximum)
    throw error(errc::limit,
                {"the npy image has shape ", to_string(shape), ", and no side may exceed ", maximum});
  const image_size size{static_cast<std::uint32_t>(shape[1]), static_cast<std::uint32_t>(shape[0])};
  check_image_size(size, item_size * channels, limits, "npy");
  return {size, header.data_offset};
}

[[nodiscard]] inline bool begins_as_npy(bytes_view bytes) noexcept {
  return text_of(bytes).starts_with("\x93NUMPY");
}

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
///     auto depths = directory("depths") | decode<npy_image_as<gray16>>;
template <pixel_format Format>
struct npy_image_as {
  image_limits limits{};

  static constexpr std::string_view codec_name = "npy_image";
  static constexpr std::string_view extensions[] = {"npy"};
  using scratch = image_scratch;

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
