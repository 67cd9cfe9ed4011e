// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>

#include <string_view>

namespace penstock::inline v0_1 {

namespace detail {

/// The length of the longest prefix of well-formed UTF-8: all bytes, or the offset of the first bad one.
/// Source: table 3-7 of the Unicode standard (no overlong forms, no surrogates, nothing beyond U+10FFFF).
[[nodiscard]] std::size_t valid_utf8_prefix(bytes_view bytes) noexcept;
/// Throws `errc::format` with the offset of the first bad byte if the bytes are not UTF-8.
void check_utf8(bytes_view bytes);

}  // namespace detail

/// Text: a view of the bytes, without a copy.
///
/// In: any byte element. Out: a `std::string_view` on those bytes (for a blob: on the result of its
/// `finish`). Its length is not known in advance, so `batch` needs a collate policy for it.
/// Kind: pointwise, keeps all guarantees. Cost per sample: a scan, less than 0.1 ns per byte of ASCII and 1
/// ns per byte of other scripts; no allocation. Thread-safe.
/// Throws `errc::format` with the offset of the first byte that is not UTF-8; `text{.check = false}`
/// accepts any bytes.
///
///     no_scratch none;
///     std::string_view caption = text{}.decode(std::string_view("a dog"), none);
struct text {
  /// Whether the bytes must be well-formed UTF-8.
  bool check = true;

  static constexpr std::string_view codec_name = "text";
  static constexpr std::string_view extensions[] = {"txt", "text", "transcript"};

  template <byte_element Bytes>
  [[nodiscard]] std::string_view decode(const Bytes& in, no_scratch&) const {
    const bytes_view bytes = as_bytes(in);
    if (check) detail::check_utf8(bytes);
    return text_of(bytes);
  }
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/text.ipp>
#endif
