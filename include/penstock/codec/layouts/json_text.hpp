// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>

#include <string>
#include <utility>
#include <vector>

/// JSON as Python's `json` writes it: RFC 8259, and the numbers NaN, Infinity and -Infinity.
namespace penstock::inline v0_1::detail {

/// The text of a payload, without a byte order mark. Throws `errc::limit` for more than `limit` bytes.
[[nodiscard]] std::string_view json_text(bytes_view bytes, std::uint64_t limit);

/// Where a text stops being JSON, or its size if it ends too early; `npos` for JSON. Escapes of lone
/// surrogates are JSON.
[[nodiscard, gnu::cold]] std::size_t json_fault(std::string_view text);

/// Throws `errc::format`: the text is not JSON, with the offset where it goes wrong.
[[noreturn, gnu::cold]] void json_malformed(std::string_view text, std::uint64_t offset);

/// Replaces the escapes of a JSON string, without its quotes, where it lies, and returns the text. Half a
/// surrogate pair becomes U+FFFD. Returns a null pointer for an escape that JSON does not have.
[[nodiscard]] std::string_view json_unescape(char* text, std::size_t size) noexcept;

/// What a text has that parsers of plain JSON refuse.
struct json_extras {
  bool words = false;       ///< perhaps NaN or Infinity
  bool surrogates = false;  ///< escapes of surrogates, perhaps lone
};

/// Throws `errc::limit` if the nesting is deeper than `depth`; works on any text, well-formed JSON or not.
json_extras check_json_depth(std::string_view text, std::uint64_t depth);

/// Turns a text into plain JSON of the same length: lone surrogates become U+FFFD, and NaN and infinities
/// zeros. Returns which numbers of the text these are, in order, and their values.
[[nodiscard, gnu::cold]] std::vector<std::pair<std::size_t, double>> to_plain_json(std::string& text);

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/codec/layouts/json_text.ipp>
#endif
