// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/detail/rows_by_room.hpp>

#include <span>

namespace penstock::inline v0_1 {

/// How samples are put into rows.
///   best_fit    best fit decreasing: the longest sample first, each into the row in which it leaves the least
///               room. The fewest rows, in an order of its own
///   first_fit   in the given order, each into the first row that has room for it
///   in_order    next fit: a row ends at the first sample that it has no room for. Keeps the order
enum class packing : std::uint8_t { best_fit, first_fit, in_order };

/// What a row holds, and how rows are filled.
struct row_limits {
  std::uint64_t capacity = 0;     ///< tokens in a row, at least 1 and below 2^31
  std::uint64_t max_samples = 0;  ///< samples in a row; 0: any number
  packing how = packing::best_fit;
};

/// Packs samples into rows, of which it sees only the lengths: which samples go into one sequence of at most
/// `capacity` tokens.
///
/// Rows are numbered in the order in which they were opened. A row's samples stand in the order in which they
/// were put there, so with `first_fit` and `in_order` in the given order, and with `best_fit` the longest
/// first and equally long ones in the given order. The result depends on the lengths and the limits alone, on
/// any machine. A row that has `max_samples` is closed. Samples of length 0 are put like others; with
/// `best_fit` they come last, into the first rows that may have more samples.
/// Of rows with equal room `best_fit` takes the one that has had that room for the shortest time. Without
/// `max_samples` the number of rows does not depend on that.
/// Cost: `best_fit` sorts by counting, and finds a row for all samples of a length that fit there at once, in
/// O(log capacity); `first_fit` takes O(log n) for each sample. The packer keeps its memory: 12 bytes per
/// sample, 12 per row, for `first_fit` up to 16 more per sample, for `count` up to 32, and for `best_fit` up
/// to 17 KB, or above a capacity of 4,097 about 300 bytes for each different room that rows have. Once it has
/// seen as many samples and rows, `pack` allocates nothing.
/// Throws `error(errc::argument)` for an impossible limit, and for a sample that is longer than a row.
/// Threads: one at a time.
/// Source: H. Ding and others, "Fewer Truncations Improve Language Modeling", ICML 2024 (best fit decreasing
/// over whole numbers); the bits over rooms are as in van Emde Boas' trees.
///
///     row_packer packer({.capacity = 4096});
///     packer.pack(lengths);
///     for (std::size_t r = 0; r < packer.rows(); ++r)
///       for (const std::uint32_t sample : packer.items(r)) load(sample);
class row_packer {
 public:
  explicit row_packer(row_limits limits);

  /// Packs samples of these lengths, each at most `capacity`. What was packed before is gone.
  void pack(std::span<const std::uint32_t> lengths);
  /// How many rows `pack` makes of them. With `best_fit` and any number of samples in a row this takes less
  /// time, because it depends only on how many samples have each length. What was packed before is gone.
  [[nodiscard]] std::size_t count(std::span<const std::uint32_t> lengths);

  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  /// The samples in row r, as numbers of `lengths`. Valid until the next `pack`.
  [[nodiscard]] std::span<const std::uint32_t> items(std::size_t r) const noexcept {
    return {items_.data() + begins_[r], begins_[r + 1] - begins_[r]};
  }

 private:
  using lengths_view = std::span<const std::uint32_t>;

  std::uint32_t check(lengths_view lengths) const;
  void best_fit(lengths_view lengths);
  [[nodiscard]] std::size_t count_best_fit(lengths_view lengths, std::uint32_t longest);
  [[nodiscard]] std::uint32_t count_equal(std::uint32_t length, std::uint32_t samples);
  void first_fit(lengths_view lengths);
  void in_order(lengths_view lengths);
  void sort_by_length(lengths_view lengths);
  void put_equal(std::uint32_t length, std::size_t first, std::size_t last);
  void put_empty(std::size_t first, std::size_t last);
  void open_row();
  void push(std::uint32_t room, std::uint32_t newest, std::uint32_t oldest);
  void gather(std::size_t samples);

  /// A row while it is filled. It is in the list of rows with equal room, unless it is closed.
  struct open {
    std::uint32_t next, samples;
  };

  row_limits limits_;
  std::uint32_t capacity_, max_samples_;
  std::size_t rows_ = 0;
  std::vector<std::uint32_t> order_;   // the samples in the order in which they are put
  std::vector<std::uint32_t> row_of_;  // and the row of each; before that, the other side of the sort
  std::vector<std::uint32_t> counts_;  // of the sort, and of the samples of each length
  std::vector<open> open_;
  std::vector<std::uint32_t> tree_;  // first_fit: the most room among the rows below each node
  detail::rows_by_room rooms_;
  std::vector<std::uint32_t> begins_, items_;  // the result
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/row_packer.ipp>
#endif
