// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/litdata_leaf.hpp>
#include <penstock/codec/layouts/mds_encoding.hpp>
#include <penstock/codec/npy.hpp>

namespace penstock::inline v0_1 {

/// Reads the arrays and tensors of LitData's formats `numpy`, `tensor`, `no_header_numpy` and
/// `no_header_tensor`.
///
/// In: any byte element; a leaf of `litdata` knows which of the four it is, other bytes are taken for a
/// tensor. Out: an array expression of the value's shape, one to eight dimensions, that writes its values
/// straight to their destination; a tensor without dimensions is an array of one value, and `bool` is read as
/// `std::uint8_t`.
/// Kind: pointwise, keeps all guarantees. Cost per sample: reading at most 40 bytes of header, and one copy
/// of the values; no allocation, except for the scratch of `finish` if values are misaligned. Thread-safe,
/// with a scratch per thread.
/// Throws `errc::format`, with the offset, for a leaf of another format, values of another type than `T`
/// (nothing is converted silently), a length of 0, and bytes that do not have the announced shape.
/// Versions up to 0.2.56 wrote the headers of tensors little-endian, later ones big-endian, and neither says
/// so: the order in which the header fits its size is taken.
/// Source: litdata, streaming/serializers.py.
///
///     litdata_array<std::uint8_t>::scratch scratch;
///     const std::string_view two("\0\0\0\x0b\0\0\0\1\0\0\0\2hi", 14);
///     const auto array = litdata_array<std::uint8_t>{}.decode(two, scratch);
template <class T>
struct litdata_array {
  static_assert(
      !mds_dtype<T>.empty() && std::is_trivially_copyable_v<T>,
      "penstock: litdata_array<T> needs a whole number type, half, float or double; for a half-float "
      "type of your own specialise penstock::mds_dtype");

  static constexpr std::string_view codec_name = "litdata_array";
  struct scratch {
    buffer values;
    detail::litdata_form form;  // of the last leaf
  };

  template <byte_element Bytes>
  [[nodiscard]] npy_array<T> decode(const Bytes& in, scratch& s) const {
    if constexpr (requires { in.encoding(); }) {
      const std::string_view stored = in.encoding();
      if (stored != s.form.format) s.form = detail::litdata_form_of(stored, mds_dtype<T>);
    }
    const bytes_view bytes = as_bytes(in);
    const auto found = detail::find_litdata_array(bytes, s.form, mds_dtype<T>, sizeof(T));
    return {bytes.subspan(found.begin), found.shape, std::endian::native == std::endian::big && sizeof(T) > 1,
            s.values};
  }
};

}  // namespace penstock::inline v0_1
