// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/packed_rows.hpp>
#include <penstock/core/tensor.hpp>

#include <algorithm>
#include <concepts>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// The documents in windows of tokens, which `document_rows` finds: what `packed_rows` tells of rows, whose
/// documents follow one another without padding. It has its list, and can be moved but not copied.
///
/// A window of `length` inputs and `targets` more tokens is a row of `length` places. A document that began
/// before its window counts from the window's first token.
/// Thread-safe; each call computes and allocates what it returns.
class window_documents : public packed_rows {
 public:
  window_documents() = default;
  window_documents(window_documents&&) noexcept = default;
  window_documents& operator=(window_documents&&) noexcept = default;

  /// `ends(row, i)`: whether token i of a row is the last one of a document; asked for i from 0 to the row's
  /// last input.
  template <class Ends>
  window_documents(const extents& windows, std::uint64_t targets, const Ends& ends) : windows_(windows) {
    check(windows, targets);
    const std::size_t rows = detail::to_size(windows[0]), span = detail::to_size(windows[1]);
    const std::size_t length = span - detail::to_size(targets);
    for (std::size_t row = 0; row < rows; ++row) {
      std::size_t begin = 0;
      bool ended = false;
      for (std::size_t i = 0; i < length; ++i) {
        ended = ends(row, i);
        if (!ended && i + 1 != length) continue;
        const auto size = static_cast<std::uint32_t>(i + 1 - begin);
        list_.push_back(
            {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(begin), size, size, 0, size});
        begin = i + 1;
      }
      goes_on_.push_back(!ended && targets != 0);
    }
    static_cast<packed_rows&>(*this) = {list_.data(), list_.size(), rows, length};
  }

  /// What a model is to predict in each place: the next token of the same document, and `ignored` at a
  /// document's last token, where the next one begins: -100 is what PyTorch's cross_entropy ignores. `tokens`
  /// are the windows with their targets. Throws `errc::argument` if they have another shape.
  template <class T>
  [[nodiscard]] std::vector<std::int64_t> labels(const tensor_view<T>& tokens,
                                                 std::int64_t ignored = -100) const {
    if (!(tokens.shape() == windows_)) refuse_labels(tokens.shape());
    std::vector<std::int64_t> all(row_count() * capacity(), ignored);
    const std::size_t span = row_count() == 0 ? 0 : tokens.size() / row_count();
    for (const packed_document& d : documents()) {
      const T* const first = tokens.data() + d.row * span + d.begin;
      const bool next = d.begin + d.length == capacity() && goes_on_[d.row];
      for (std::size_t i = 0; i < d.length - (next ? 0u : 1u); ++i)
        all[d.row * capacity() + d.begin + i] = static_cast<std::int64_t>(first[i + 1]);
    }
    return all;
  }

 private:
  /// Throws `errc::argument` unless these are windows with so many targets, whose places 32 bits can count.
  static void check(const extents& windows, std::uint64_t targets);
  [[noreturn, gnu::cold]] void refuse_labels(const extents& shape) const;

  extents windows_;
  std::vector<packed_document> list_;
  std::vector<bool> goes_on_;  // by row: whether its last document has a token after the inputs
};

/// The documents in windows of tokens in which an end-of-text token ends each: that of the tokenizer, which
/// belongs to the document before it.
///
///     const std::vector<std::uint16_t> text{1, 2, 9, 3, 4, 5};  // 5 inputs and a target
///     const tensor_view<const std::uint16_t> window(text.data(), extents(1, 6));
///     const auto documents = document_rows(window, 9);
///     const std::vector<std::int32_t> starts = documents.cu_seqlens();  // 0, 3, 5
///
/// In: (rows, length + targets) tokens, as a batch of `raw_tokens`, `llmc_tokens`, `megatron_tokens`,
/// `litdata_tokens` or `megatron_gpt` has them. Out: `cu_seqlens()`, `max_seqlen()`, `position_ids()`,
/// `document_ids()` and the like for (rows, length) inputs, and `labels(tokens)`.
/// Cost: one pass over the tokens, in the caller's thread. Position ids, and the labels that are ignored,
/// are those of Megatron's `reset_position_ids` and `eod_mask_loss`.
/// Throws `errc::argument` for windows that are not (rows, length + targets) tokens, and for a token that the
/// type of the tokens cannot hold.
template <class T>
[[nodiscard]] window_documents document_rows(const tensor_view<T>& tokens, std::int64_t eot,
                                             std::uint64_t targets = 1) {
  using token = std::remove_const_t<T>;
  if (!std::in_range<token>(eot))
    throw error(errc::argument,
                {"document_rows: there is no token ", eot, " in ", 8 * sizeof(token), " bits"});
  const std::size_t span = tokens.rank() == 2 ? detail::to_size(tokens.shape()[1]) : 0;
  return window_documents(tokens.shape(), targets, [&](std::size_t row, std::size_t i) {
    return tokens.data()[row * span + i] == static_cast<token>(eot);
  });
}

/// The documents in windows whose tokens have numbers of documents: the field "document_ids" of
/// `megatron_tokens` with `with_document_ids`. Else as `document_rows`.
[[nodiscard]] window_documents document_rows_of(const tensor_view<const std::int32_t>& ids,
                                                std::uint64_t targets = 1);

inline void window_documents::check(const extents& windows, std::uint64_t targets) {
  if (windows.rank() != 2 || windows[1] <= targets)
    throw error(errc::argument, {"document_rows: an array of shape ", to_string(windows),
                                 " is not one of windows with ", targets, " targets"});
  constexpr std::uint64_t most = 0x7fffffff;  // offsets are of 32 bits
  if (windows[1] > most || windows[0] > most / windows[1])
    throw error(errc::argument,
                {"document_rows: windows of shape ", to_string(windows), " have more places than 2^31 - 1"});
}

inline void window_documents::refuse_labels(const extents& shape) const {
  throw error(errc::argument, {"document_rows: labels are made of the windows of shape ", to_string(windows_),
                               ", and these tokens have shape ", to_string(shape)});
}

inline window_documents document_rows_of(const tensor_view<const std::int32_t>& ids, std::uint64_t targets) {
  const std::size_t span = ids.rank() == 2 ? detail::to_size(ids.shape()[1]) : 0;
  return window_documents(ids.shape(), targets, [&](std::size_t row, std::size_t i) {
    const std::int32_t* const at = ids.data() + row * span + i;
    return i + 1 != span && at[0] != at[1];
  });
}

}  // namespace penstock::inline v0_1
