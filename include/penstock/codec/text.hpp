// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/concepts.hpp>
#include <penstock/codec/layouts/number_text.hpp>
#include <penstock/core/error.hpp>

#include <cstring>

namespace penstock::inline v0_1 {

namespace detail {

/// What a byte says of the character that it begins: its length, 0 if it begins none, and the range of its
/// second byte. Source: table 3-7 of the Unicode standard (no overlong forms, no surrogates, nothing beyond
/// U+10FFFF).
struct utf8_lead {
  std::size_t length;
  unsigned low, high;

  constexpr explicit utf8_lead(unsigned lead) noexcept
      : length(lead < 0x80   ? 1
               : lead < 0xc2 ? 0
               : lead < 0xe0 ? 2
               : lead < 0xf0 ? 3
               : lead < 0xf5 ? 4
                             : 0),
        low(lead == 0xe0   ? 0xa0
            : lead == 0xf0 ? 0x90
                           : 0x80),
        high(lead == 0xed   ? 0x9f
             : lead == 0xf4 ? 0x8f
                            : 0xbf) {}
};

/// The length of the longest prefix of well-formed UTF-8: all bytes, or the offset of the first bad one.
[[nodiscard]] inline std::size_t valid_utf8_prefix(bytes_view bytes) noexcept {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  const std::size_t size = bytes.size();
  std::size_t i = 0;
  while (i < size) {
    // most text is ASCII: skip it 32 bytes at a time
    if (i + 32 <= size) {
      std::uint64_t all = 0;
      for (std::size_t k = 0; k < 32; k += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i + k, 8);
        all |= word;
      }
      if ((all & 0x8080808080808080u) == 0) {
        i += 32;
        continue;
      }
    }
    const unsigned lead = at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const utf8_lead what(lead);
    if (what.length == 0 || size - i < what.length) return i;
    if (at(i + 1) < what.low || at(i + 1) > what.high) return i;
    for (std::size_t k = 2; k < what.length; ++k)
      if ((at(i + k) & 0xc0) != 0x80) return i;
    i += what.length;
  }
  return size;
}
/// Text as UTF-8: itself, or a copy in `memory` in which each malformed part is U+FFFD: the longest beginning
/// of a character, or else a byte, as section 3.9 of the Unicode standard and Python's errors="replace" have
/// it.
[[nodiscard]] inline std::string_view with_replaced_utf8(std::string_view in, buffer& memory) {
  std::size_t good = valid_utf8_prefix(bytes_of(in));
  if (good == in.size()) return in;
  memory.clear();
  for (;; good = valid_utf8_prefix(bytes_of(in))) {
    memory.append(bytes_of(in.substr(0, good)));
    in.remove_prefix(good);
    if (in.empty()) return text_of(memory.view());
    const auto at = [in](std::size_t i) { return static_cast<unsigned char>(in[i]); };
    const utf8_lead what(at(0));
    std::size_t part = 1;
    if (what.length > 2 && in.size() > 1 && at(1) >= what.low && at(1) <= what.high) {
      part = 2;
      while (part < what.length - 1 && part < in.size() && (at(part) & 0xc0) == 0x80) ++part;
    }
    memory.append(bytes_of("\xef\xbf\xbd"));
    in.remove_prefix(part);
  }
}
/// Throws `errc::format` with the offset of the first bad byte if the bytes are not UTF-8.
inline void check_utf8(bytes_view bytes) {
  const std::size_t good = valid_utf8_prefix(bytes);
  if (good != bytes.size())
    throw error(errc::format, {"the text is not UTF-8: found ", quoted(bytes.subspan(good), 4),
                               "; text{.check = false} takes any bytes"})
        .at_offset(good);
}
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
