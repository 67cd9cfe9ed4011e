// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/mds_encoding.hpp>
#include <penstock/codec/npy.hpp>

namespace penstock::inline v0_1 {

namespace detail {
inline constexpr bool mds_swapped = std::endian::native == std::endian::big;
}  // namespace detail

/// Reads the arrays of MosaicML's encodings `ndarray`, `ndarray:DTYPE` and `ndarray:DTYPE:SHAPE`.
///
/// In: any byte element; a column of `mds` knows which of the three it is. Other bytes are taken for the
/// first, also those that a function of yours took from a column of the others. Out: an array expression of
/// the value's shape, one to eight dimensions, that writes its values straight to their destination.
/// Kind: pointwise, keeps all guarantees. Cost per sample: reading at most 66 bytes of header, and one copy
/// of the values; no allocation, except for the scratch of `finish` if values are misaligned. Thread-safe,
/// with a scratch per thread.
/// Throws `errc::format`, with the offset, for a column of another encoding, values of another type than `T`
/// (nothing is converted silently), and bytes that do not have the announced shape.
/// Source: mosaicml-streaming, streaming/base/format/mds/encodings.py (NDArray).
///
///     mds_array<std::uint8_t>::scratch scratch;
///     const auto array = mds_array<std::uint8_t>{}.decode(std::string_view("\x08\x04\x02hi"), scratch);
template <class T>
struct mds_array {
  static_assert(!mds_dtype<T>.empty() && std::is_trivially_copyable_v<T>,
                "penstock: mds_array<T> needs a whole number type, half, float or double; for a half-float "
                "type of your own specialise penstock::mds_dtype");

  static constexpr std::string_view codec_name = "mds_array";
  struct scratch {
    buffer values;
    detail::mds_array_form form;  // of the last column
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    if constexpr (requires { in.encoding(); }) {
      const std::string_view stored = in.encoding();
      if (stored != s.form.encoding) s.form = detail::mds_array_form_of(stored, mds_dtype<T>);
    }
    const bytes_view bytes = as_bytes(in);
    const auto found = detail::find_mds_array(bytes, s.form, mds_dtype<T>, sizeof(T));
    return {bytes.subspan(found.begin), found.shape, detail::mds_swapped && sizeof(T) > 1, s.values};
  }
};

/// Reads the images of MosaicML's encoding `pil`: what PIL's `tobytes` gave, uncompressed.
///
/// In: any byte element. Out: an array expression of bytes of shape (height, width, channels), for the modes
/// L, LA, RGB, RGBA, CMYK, YCbCr, LAB and HSV.
/// Kind: pointwise, keeps all guarantees. Cost per sample: one copy; no allocation. Thread-safe, with a
/// scratch per thread.
/// Throws `errc::format`, with the offset, for a column of another encoding, any other mode, and bytes that
/// do not have the announced size.
/// Source: mosaicml-streaming, streaming/base/format/mds/encodings.py (PIL).
///
///     pil_pixels::scratch scratch;
///     const std::string_view black("\1\0\0\0\1\0\0\0\1\0\0\0L\0", 14);
///     const auto image = pil_pixels{}.decode(black, scratch);
struct pil_pixels {
  static constexpr std::string_view codec_name = "pil_pixels";
  struct scratch {
    buffer values;
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<std::uint8_t> decode(const Bytes& in, scratch& s) const {
    if constexpr (requires { in.encoding(); }) detail::check_pil_encoding(in.encoding());
    const bytes_view bytes = as_bytes(in);
    const auto found = detail::find_pil_values(bytes);
    return {bytes.subspan(found.begin), found.shape, false, s.values};
  }
};

/// Reads the lists of MosaicML's encodings `list[pil]`, `list[jpeg]`, `list[png]` and `jpeg_array`.
///
/// In: any byte element; a column of `mds` knows which it is, other bytes are taken for one of the first
/// three. Out: the bytes of each image, as a `std::vector<std::string>`: a list may outlive its sample, and
/// `unbatch` makes samples of it.
/// Kind: pointwise, keeps all guarantees. Cost per sample: an allocation and a copy for each image.
/// Thread-safe, with a scratch per thread.
/// Throws `errc::format`, with the offset, for a column of another encoding and for parts that do not fill
/// the bytes exactly.
/// Source: mosaicml-streaming, streaming/base/format/mds/encodings.py (JPEGArray, PILList).
///
///     mds_list::scratch scratch;
///     const std::string_view two("\0\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0abb", 19);
///     const std::vector<std::string> parts = mds_list{}.decode(two, scratch);
struct mds_list {
  static constexpr std::string_view codec_name = "mds_list";
  using scratch = std::vector<bytes_view>;

  template <byte_element Bytes>
  [[nodiscard]] std::vector<std::string> decode(const Bytes& in, scratch& s) const {
    bool reserved = true;
    if constexpr (requires { in.encoding(); }) reserved = detail::check_mds_list(in.encoding());
    detail::find_mds_parts(as_bytes(in), reserved, s);
    std::vector<std::string> parts;
    parts.reserve(s.size());
    for (const bytes_view part : s) parts.emplace_back(text_of(part));
    return parts;
  }
};

}  // namespace penstock::inline v0_1
