// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/text.hpp>

#include <type_traits>

namespace penstock::inline v0_1 {

/// What a tokenizer does with text that is no UTF-8.
///   refuse    it is an error with its offset
///   replace   each malformed part is U+FFFD, as Python's errors="replace" makes it
enum class invalid_utf8 { refuse, replace };

/// What `bpe` does with special tokens, such as `<|endoftext|>`, that stand in a text as words.
///   recognise   they become those tokens, as by default with `tokenizers`
///   text        they are text like other text, as with tiktoken's `encode_ordinary`
///   refuse      they are an error with their offset, as by default with tiktoken
enum class special_tokens { recognise, text, refuse };

namespace detail {

/// Text for a tokenizer: UTF-8, in place or in `memory`.
[[nodiscard]] inline std::string_view tokenizer_text(std::string_view in, invalid_utf8 how, buffer& memory) {
  if (how == invalid_utf8::replace) return with_replaced_utf8(in, memory);
  if (const std::size_t good = valid_utf8_prefix(bytes_of(in)); good != in.size())
    throw error(errc::format, {"the text is not UTF-8: found ", quoted(bytes_of(in.substr(good)), 4),
                               "; the option .invalid = invalid_utf8::replace takes U+FFFD for it"})
        .at_offset(good);
  return in;
}

/// Whether tokenizers give tokens of this type.
template <class T>
inline constexpr bool token_number = std::is_same_v<T, std::uint32_t> || std::is_same_v<T, std::uint16_t> ||
                                     std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

}  // namespace detail

}  // namespace penstock::inline v0_1
