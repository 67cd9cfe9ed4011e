// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/packed_rows.hpp>
#include <penstock/order/packing.hpp>

#include <optional>
#include <span>
#include <vector>

/// What `pack` does with the lengths of one window, whether they are known before samples are read or are
/// those of samples that have come.
namespace penstock::inline v0_1 {

/// A sample in a row, or a piece of one.
struct packed_piece {
  std::uint32_t place = 0;   // its number in the window
  std::uint32_t length = 0;  // without padding
  std::uint64_t first = 0;   // its first token in the sample
  std::uint64_t whole = 0;   // tokens of the whole sample
};

/// A length in units of `align`, rounded up.
[[nodiscard]] constexpr std::uint32_t units_of(std::uint32_t length, std::uint64_t align) noexcept {
  const auto unit = static_cast<std::uint32_t>(align);
  return unit == 1 ? length : (length + unit - 1) / unit;
}
/// Places of a piece in its row.
[[nodiscard]] constexpr std::uint32_t padded_length(std::uint32_t length, std::uint64_t align) noexcept {
  return units_of(length, align) * static_cast<std::uint32_t>(align);
}

/// The rows of a window.
struct packed_window {
  std::vector<packed_piece> pieces;  // row after row
  std::vector<std::size_t> ends;     // row r has the pieces [ends[r], ends[r + 1])

  [[nodiscard]] std::size_t rows() const noexcept { return ends.empty() ? 0 : ends.size() - 1; }
  /// Calls `f(piece, document)` for each piece of a row, which becomes row `number` of a batch. If rows are
  /// sliced, the rest of `row_length` places belongs to the last one: kernels cut a row's end with its last
  /// document, since `cu_seqlens_padded` does not tell them apart.
  template <class F>
  void each_document(std::size_t row, std::uint32_t number, const packed_facts& facts,
                     std::uint64_t row_length, const F& f) const {
    std::uint32_t begin = 0;
    for (std::size_t i = ends[row]; i < ends[row + 1]; ++i) {
      const packed_piece& piece = pieces[i];
      const bool to_the_end = facts.slices != 1 && i + 1 == ends[row + 1];
      const std::uint32_t places = to_the_end ? static_cast<std::uint32_t>(row_length) - begin
                                              : padded_length(piece.length, facts.options.align);
      f(piece, packed_document{number, begin, piece.length, places, piece.first, piece.whole});
      begin += places;
    }
  }
};

/// Packs one window after another: their samples, cut or split where they are too long, into rows by a
/// `row_packer`, and the rows into the order in which they come. Keeps its memory. Threads: one at a time.
///
///     const std::vector<std::uint64_t> sizes{100, 4000, 90};
///     window_packer packer(pack_options{.align = 8});
///     packed_window rows;
///     if (packer.pack(sizes, 4096) == sizes.size()) packer.write(rows, sizes, row_order_key(7, 0, 0));
class window_packer {
 public:
  explicit window_packer(const pack_options& options) : options_(options) {}

  /// Packs samples of these lengths into rows of `capacity` tokens. Returns the number of the first sample
  /// that is too long and refused; that of all samples if there is none.
  [[nodiscard]] std::size_t pack(std::span<const std::uint64_t> lengths, std::uint64_t capacity);
  /// The same in less time, where only the numbers of rows and pieces are wanted.
  [[nodiscard]] std::size_t count(std::span<const std::uint64_t> lengths, std::uint64_t capacity);
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t pieces() const noexcept { return units_.size(); }
  /// The window that was packed last, of these lengths, its rows in the random order of this key, or in their
  /// own with `packing::in_order`.
  void write(packed_window& into, std::span<const std::uint64_t> lengths, std::uint64_t key) const;

 private:
  static constexpr std::uint64_t max_pieces = std::uint64_t{1} << 28;

  /// Finds the pieces of samples. Returns the number of the first one that is too long and refused.
  [[nodiscard]] std::size_t divide(std::span<const std::uint64_t> lengths, std::uint64_t capacity);
  [[nodiscard]] bool divide_one(std::uint32_t place, std::uint64_t length, std::uint64_t capacity);
  [[nodiscard]] row_packer& packer_for(std::uint64_t capacity);

  pack_options options_;
  std::vector<packed_piece> pieces_;  // empty if each sample is one, all of it
  std::vector<std::uint32_t> units_;  // lengths for the packer, in those of `align`
  std::optional<row_packer> packer_;
  std::uint64_t packer_capacity_ = 0;
  std::size_t rows_ = 0;
};

/// The key of the order in which the rows of a window come.
[[nodiscard]] std::uint64_t row_order_key(std::uint64_t seed, std::uint64_t epoch, std::uint64_t window);

/// Throws `error(errc::argument)` for options that no row can have, and for such a capacity.
void check_pack(const packed_facts& facts);
void check_capacity(const packed_facts& facts, std::uint64_t capacity);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/window_packer.ipp>
#endif
