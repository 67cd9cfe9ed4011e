// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>

#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// The work that a document of n tokens makes, as a whole number: `linear` n + `quadratic` n^2. Attention is
/// within documents, so the work of a row is the sum over its documents.
///
/// Only the ratio of the two matters. A layer of a causal transformer of width d takes 24 d^2 n operations
/// for its matrices and 2 d n^2 for attention, so 12 d to 1: the default is d = 4,096. {0, 1} is attention
/// alone.
///
///     const std::uint64_t work = work_weights{.linear = 12 * 2048}.of(512);  // of a model of width 2,048
struct work_weights {
  std::uint64_t linear = 12 * 4096, quadratic = 1;

  /// 2^64 - 1 if it were more than that.
  [[nodiscard]] constexpr std::uint64_t of(std::uint32_t tokens) const noexcept {
    return plus(times(linear, tokens), times(times(quadratic, tokens), tokens));
  }
  /// The sum of two amounts of work, likewise.
  [[nodiscard]] static constexpr std::uint64_t plus(std::uint64_t a, std::uint64_t b) noexcept {
    return a + b < a ? most : a + b;
  }

 private:
  static constexpr std::uint64_t most = ~std::uint64_t{0};
  [[nodiscard]] static constexpr std::uint64_t times(std::uint64_t a, std::uint64_t b) noexcept {
    return b != 0 && a > most / b ? most : a * b;
  }
};

/// Deals the rows of a step to the ranks, equally many to each, so that the rank with the most work has as
/// little as possible: all ranks wait for it.
///
/// The most costly row goes to the rank with the least work that still takes one, then the next one, and so
/// on; then rows are exchanged in pairs between the rank with the most work and those with the least, as long
/// as that helps. Never worse than rows in order, `count / ranks` consecutive ones to each rank. If the rows
/// do not divide evenly, the first `count % ranks` ranks have one more. Whole numbers only, so that every
/// rank computes the same deal on any machine, and nothing is communicated.
/// Cost: O(rows log rows); the exchanges take at most 32 looks at a row for each row. Keeps its memory, 16
/// bytes for each row and each rank: once it has seen as many, `deal` allocates nothing.
/// Throws `error(errc::argument)` for no ranks. Costs whose sum might be 2^63 or more are rounded.
/// Threads: one at a time.
/// Source: R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969 (the longest first), with a limit
/// to the number as in L.-H. Tsai, "Asymptotic Analysis of an Algorithm for Balanced Parallel Processor
/// Scheduling", 1992.
///
///     equal_work work;
///     work.deal(costs, world_size);
///     for (const std::uint32_t row : work.rows(rank)) load(row);
class equal_work {
 public:
  /// Deals rows of these costs. What was dealt before is gone.
  void deal(std::span<const std::uint64_t> costs, std::size_t ranks);

  [[nodiscard]] std::size_t ranks() const noexcept { return ranks_; }
  /// The rows of a rank, as numbers of `costs`, ascending. Valid until the next `deal`.
  [[nodiscard]] std::span<const std::uint32_t> rows(std::size_t rank) const noexcept {
    return {rows_.data() + begin_of(rank), begin_of(rank + 1) - begin_of(rank)};
  }

 private:
  struct share {
    std::uint64_t work = 0;
    std::uint32_t rank = 0, rows = 0;
  };

  [[nodiscard]] std::size_t begin_of(std::size_t rank) const noexcept {
    return rank * each_ + (rank < more_ ? rank : more_);
  }
  void take_costs(std::span<const std::uint64_t> costs);
  void deal_longest_first();
  [[nodiscard]] bool in_order_is_better();
  void deal_in_order();
  void exchange();
  [[nodiscard]] bool exchange(share& most, share& least);
  void settle(std::size_t rank, std::size_t at);

  std::size_t ranks_ = 0, each_ = 0, more_ = 0;
  std::vector<std::uint64_t> costs_;  // so small that their sum is below 2^63
  std::vector<std::uint32_t> order_;  // rows, the most costly first
  std::vector<std::uint32_t> rows_;   // the result; until it is complete, each rank's most costly first
  std::vector<share> shares_;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/order/equal_work.ipp>
#endif
