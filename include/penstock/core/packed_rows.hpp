// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/cpp20.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

namespace penstock::inline v0_1 {

/// A document in a row of packed sequences: a sample, or a piece of one that was split.
struct packed_document {
  std::uint32_t row = 0;     ///< of the batch
  std::uint32_t begin = 0;   ///< its first place in the row
  std::uint32_t length = 0;  ///< its tokens
  std::uint32_t padded = 0;  ///< its places: the tokens, and padding to a multiple of `.align`; with
                             ///< `context_parallel` the last one's go on to the end of the row
  std::uint64_t first = 0;   ///< its first token's place in the sample; above 0 for pieces but the first
  std::uint64_t whole = 0;   ///< tokens of the whole sample

  friend constexpr bool operator==(const packed_document&, const packed_document&) = default;
};

/// Which documents are where in the rows of a batch, and what attention kernels and losses need to know of
/// it. A view: valid while the batch is held. Thread-safe; each call computes and allocates what it returns,
/// in one pass over it.
///
/// With `context_parallel(size, rank)` the rows are one rank's slices: of each document, whose places are 2
/// `size` equal chunks, chunk `rank` and chunk 2 `size` - 1 - `rank`. Lengths and offsets are then those of
/// the slices, position ids those in the documents; `whole()` has the rows before they were sliced.
///
/// Arrays have (rows, capacity) places, row by row, as the tokens have; offsets count through all rows of the
/// batch in one run, as FlashAttention's and Transformer Engine's variable-length kernels count.
class packed_rows {
 public:
  packed_rows() = default;
  /// `documents` are sorted by row and place. `capacity`: places of a row before it is sliced.
  packed_rows(const packed_document* documents, std::size_t count, std::size_t rows, std::size_t capacity,
              std::uint32_t slices = 1, std::uint32_t slice = 0) noexcept
      : documents_(documents),
        count_(count),
        rows_(rows),
        capacity_(capacity),
        slices_(slices),
        slice_(slice) {}

  /// Rows of the batch, with those of padding.
  [[nodiscard]] std::size_t row_count() const noexcept { return rows_; }
  /// Places of a row, or of its slice.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_ / slices_; }
  /// All documents, in the order of their places before rows were sliced.
  [[nodiscard]] std::span<const packed_document> documents() const noexcept { return {documents_, count_}; }
  /// The rows before they were sliced.
  [[nodiscard]] packed_rows whole() const noexcept { return {documents_, count_, rows_, capacity_}; }

  /// n + 1 sums of the lengths of n documents, without padding. A row without documents counts as one of
  /// length 0. Throws `errc::argument` if the batch has more places than 2^31 - 1, and so do those below that
  /// count through all rows.
  [[nodiscard]] std::vector<std::int32_t> cu_seqlens() const;
  /// Where each of them begins in the rows, and at last the end of all rows: differences are lengths with
  /// padding, and that of a row belongs to its last document.
  [[nodiscard]] std::vector<std::int32_t> cu_seqlens_padded() const;
  /// The longest document, without padding.
  [[nodiscard]] std::int32_t max_seqlen() const noexcept;
  /// The longest one with padding: the largest difference in `cu_seqlens_padded()`.
  [[nodiscard]] std::int32_t max_seqlen_padded() const;
  /// The place of each token in its document, 0 in padding.
  [[nodiscard]] std::vector<std::int32_t> position_ids() const;
  /// The number of the document of each token among `documents()`, -1 in padding.
  [[nodiscard]] std::vector<std::int32_t> document_ids() const;
  /// 1 for a token, 0 for padding.
  [[nodiscard]] std::vector<std::uint8_t> mask() const;
  /// The sum of the lengths, divided by the places of all rows.
  [[nodiscard]] double fill() const noexcept;

  /// Calls `f(place, first, count)` for each run of places that a document has in its row or slice: those
  /// from `place` on, counted through all rows, hold its tokens and padding from token `first` on.
  template <class F>
  void for_each_run(const packed_document& d, const F& f) const {
    const std::size_t at = d.row * capacity() + d.begin / slices_;
    if (slices_ == 1) return f(at, std::uint32_t{0}, d.padded);
    const std::uint32_t chunk = d.padded / (2 * slices_);
    f(at, slice_ * chunk, chunk);
    f(at + chunk, (2 * slices_ - 1 - slice_) * chunk, chunk);
  }
  /// The document's tokens in this slice.
  [[nodiscard]] std::uint32_t length(const packed_document& d) const noexcept {
    std::uint32_t sum = 0;
    for_each_run(d, [&](std::size_t, std::uint32_t first, std::uint32_t count) {
      sum += std::min(count, d.length - std::min(first, d.length));
    });
    return sum;
  }

 private:
  /// Throws if the rows have more places than 32 bits count.
  void check_offsets() const;
  /// Calls `f(document, place)` for each document, and `f(nothing, place)` for a row without any.
  template <class F>
  void for_each_sequence(const F& f) const {
    std::size_t i = 0;
    for (std::size_t row = 0; row < rows_; ++row) {
      if (i == count_ || documents_[i].row != row) f(packed_document{}, row * capacity());
      for (; i < count_ && documents_[i].row == row; ++i)
        f(documents_[i], row * capacity() + documents_[i].begin / slices_);
    }
  }
  /// Calls `f(document number, place, token)` for each token that is here.
  template <class F>
  void for_each_token(const F& f) const {
    for (std::size_t i = 0; i < count_; ++i)
      for_each_run(documents_[i], [&](std::size_t place, std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t k = 0; k < count && first + k < documents_[i].length; ++k)
          f(i, place + k, first + k);
      });
  }

  const packed_document* documents_ = nullptr;
  std::size_t count_ = 0, rows_ = 0, capacity_ = 0;
  std::uint32_t slices_ = 1, slice_ = 0;
};

/// What a batch shows of a field that `pack` put into rows: a view of (rows, capacity) values, and the
/// documents in them.
template <class T>
class packed_view : public tensor_view<T>, public packed_rows {
 public:
  packed_view() = default;
  /// `next`: if rows are sliced, for each run of each document the token after it, which is in no slice here.
  packed_view(T* values, const packed_rows& rows, const std::remove_const_t<T>* next = nullptr) noexcept
      : tensor_view<T>(values, extents(rows.row_count(), rows.capacity())), packed_rows(rows), next_(next) {}
  /// A mutable view converts to a const one.
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_const_v<U>)
  packed_view(const packed_view<U>& other) noexcept
      : tensor_view<T>(other), packed_rows(other), next_(other.next_) {}

  /// The tokens of a document that are here, with the padding between its chunks.
  [[nodiscard]] std::span<T> operator[](const packed_document& d) const noexcept {
    T* first = nullptr;
    std::size_t size = 0;
    this->for_each_run(d, [&](std::size_t place, std::uint32_t token, std::uint32_t count) {
      if (first == nullptr) first = this->data() + place;
      const std::uint32_t used = std::min(count, d.length - std::min(token, d.length));
      if (used != 0) size = static_cast<std::size_t>(this->data() + place + used - first);
    });
    return {first, size};
  }
  using tensor_view<T>::operator[];

  /// What a model is to predict in each place: the next token of the same document, and `ignored` at a
  /// document's last token and in padding; -100 is what PyTorch's cross_entropy ignores.
  [[nodiscard]] std::vector<std::int64_t> labels(std::int64_t ignored = -100) const {
    return labels_where([](std::size_t, std::size_t, bool) { return true; }, ignored);
  }
  /// The same, and `ignored` where the next token's value in `loss` is 0: where loss is only on answers.
  template <class U>
  [[nodiscard]] std::vector<std::int64_t> labels(const packed_view<U>& loss,
                                                 std::int64_t ignored = -100) const {
    return labels_where([&](std::size_t place, std::size_t run,
                            bool is_here) { return (is_here ? loss.data()[place] : loss.next_[run]) != U{}; },
                        ignored);
  }

 private:
  template <class U>
  friend class packed_view;

  template <class Counts>
  [[nodiscard]] std::vector<std::int64_t> labels_where(const Counts& counts, std::int64_t ignored) const {
    std::vector<std::int64_t> all(this->size(), ignored);
    std::size_t run = 0;
    for (const packed_document& d : this->documents()) {
      this->for_each_run(d, [&](std::size_t place, std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t k = 0; k < count && first + k + 1 < d.length; ++k) {
          const bool is_here = k + 1 < count;
          if (!counts(place + k + 1, run, is_here)) continue;
          all[place + k] = static_cast<std::int64_t>(is_here ? this->data()[place + k + 1] : next_[run]);
        }
        ++run;
      });
    }
    return all;
  }

  const std::remove_const_t<T>* next_ = nullptr;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/packed_rows.ipp>
#endif
