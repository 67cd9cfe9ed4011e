// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <concepts>
#include <string>

namespace penstock::inline v0_1::detail {

/// The number type of tokens.
struct token_type {
  std::size_t width;
  bool is_signed;

  template <std::integral T>
  [[nodiscard]] static constexpr token_type of() noexcept {
    return {sizeof(T), std::signed_integral<T>};
  }
  friend bool operator==(const token_type&, const token_type&) = default;
};

/// The type of the tokens of which a Megatron index says this code; of width 0 for no whole number.
[[nodiscard]] token_type megatron_type(unsigned code) noexcept;
/// The name without `.bin` or `.idx`.
[[nodiscard]] std::string megatron_prefix(std::string_view name);

[[noreturn, gnu::cold]] void refuse_tokens(std::initializer_list<piece> what, std::uint64_t offset);

/// The index of a Megatron dataset, checked as a whole.
/// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
class megatron_index {
 public:
  /// `bytes` is the whole index, which must outlive this.
  explicit megatron_index(bytes_view bytes);

  /// Compares the index with the type asked for, and calls `document(first token, tokens)` for each document
  /// and `sequence(first token, tokens)` for each sequence. Returns the number of tokens.
  template <class Document, class Sequence>
  [[nodiscard]] std::uint64_t read(token_type type, Document&& document, Sequence&& sequence) const {
    check(type);
    std::uint64_t tokens = 0, begin = 0, next = 1;
    const auto close = [&](std::uint64_t last) {
      for (; next < bounds_ && bound(next) == last; ++next) {
        document(begin, tokens - begin);
        begin = tokens;
      }
    };
    close(0);
    for (std::uint64_t i = 0; i < sequences_; ++i) {
      const auto length = load_little<std::uint32_t>(bytes_.data() + to_size(head + 4 * i));
      const std::uint64_t offset_at = head + 4 * sequences_ + 8 * i;
      if (length > 0x7fffffffu || number(offset_at) != tokens * type.width)
        refuse_tokens({"sequence ", i, " does not begin where the one before it ends"}, offset_at);
      sequence(tokens, std::uint64_t{length});
      tokens += length;
      close(i + 1);
    }
    if (next != bounds_) refuse_tokens({"the bounds of documents do not ascend"}, bounds_at() + 8 * next);
    return tokens;
  }

  [[nodiscard]] std::uint64_t sequences() const noexcept { return sequences_; }
  [[nodiscard]] std::uint64_t hash() const noexcept;

 private:
  static constexpr std::size_t head = 34;

  [[nodiscard]] std::uint64_t number(std::uint64_t place) const noexcept {
    return load_little<std::uint64_t>(bytes_.data() + to_size(place));
  }
  [[nodiscard]] std::uint64_t bounds_at() const noexcept { return head + 12 * sequences_; }
  [[nodiscard]] std::uint64_t bound(std::uint64_t i) const noexcept { return number(bounds_at() + 8 * i); }
  void check(token_type type) const;

  bytes_view bytes_;
  unsigned code_ = 0;
  std::uint64_t sequences_ = 0;
  std::uint64_t bounds_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/rows/megatron_index.ipp>
#endif
