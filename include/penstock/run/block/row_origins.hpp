// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/position.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// Where the rows of a gathered batch came from: each from one position, or from several if samples were
/// combined.
///
/// Rows are appended in order. While each has a single origin this is just a list of positions; the first row
/// with a second origin adds 8 bytes per row.
class row_origins {
 public:
  void clear() noexcept;
  [[nodiscard]] bool empty() const noexcept { return positions_.empty(); }
  [[nodiscard]] std::size_t rows() const noexcept { return one_each() ? positions_.size() : ends_.size(); }
  /// Whether every row has exactly one origin.
  [[nodiscard]] bool one_each() const noexcept { return ends_.empty(); }
  /// The origins of all rows, row by row.
  [[nodiscard]] const std::vector<position>& all() const noexcept { return positions_; }
  /// The origins of a row, at least one, in the order in which they were added.
  [[nodiscard]] std::span<const position> of(std::size_t row) const noexcept;

  /// The first of them.
  [[nodiscard]] position first_of(std::size_t row) const noexcept {
    return positions_[row == 0 || one_each() ? row : ends_[row - 1]];
  }

  void reserve(std::size_t rows);
  /// Appends `count` rows of one origin each; write their positions where the result points.
  [[nodiscard]] position* add_rows(std::size_t count);
  /// Gives the last row another origin.
  void add_to_last(position origin);

 private:
  void add_ends(std::size_t count);

  std::vector<position> positions_;
  std::vector<std::size_t> ends_;  // the end of each row's origins; empty while every row has one
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/run/block/row_origins.ipp>
#endif
