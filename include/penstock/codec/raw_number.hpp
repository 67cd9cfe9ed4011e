// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/mds_encoding.hpp>

#include <algorithm>
#include <array>
#include <bit>

namespace penstock::inline v0_1 {

/// A number in the bytes that it has in memory, little-endian: MosaicML's `int`, `uint8`, `float32` and so
/// on.
///
/// In: any byte element. Out: a `T`: a whole number, `half`, `float`, `double` or a half-float type of your
/// own; see `mds_dtype`.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a copy of `sizeof(T)` bytes. Thread-safe.
/// Throws `errc::format` if there are not `sizeof(T)` bytes, or a column of `mds` is of another type.
///
///     no_scratch none;
///     const auto label = raw_number<std::int64_t>{}.decode(std::string_view("\7\0\0\0\0\0\0\0", 8), none);
template <class T>
struct raw_number {
  static_assert(!mds_dtype<T>.empty() && std::is_trivially_copyable_v<T>,
                "penstock: raw_number<T> needs a whole number type, half, float or double; for a half-float "
                "type of your own specialise penstock::mds_dtype");

  static constexpr std::string_view codec_name = "raw_number";

  template <byte_element Bytes>
  [[nodiscard]] T decode(const Bytes& in, no_scratch&) const {
    if constexpr (requires { in.encoding(); })
      if (const std::string_view stored = in.encoding(); stored != mds_dtype<T>) [[unlikely]]
        detail::check_mds_number(stored, mds_dtype<T>);
    const bytes_view bytes = as_bytes(in);
    if (bytes.size() != sizeof(T)) [[unlikely]]
      detail::no_mds_number(bytes.size(), sizeof(T));
    std::array<std::byte, sizeof(T)> copy;
    std::copy(bytes.begin(), bytes.end(), copy.begin());
    if constexpr (std::endian::native == std::endian::big) std::reverse(copy.begin(), copy.end());
    return std::bit_cast<T>(copy);
  }
};

}  // namespace penstock::inline v0_1
