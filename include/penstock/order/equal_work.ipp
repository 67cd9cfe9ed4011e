// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/equal_work.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <bit>
#include <numeric>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void equal_work::deal(std::span<const std::uint64_t> costs, std::size_t ranks) {
  if (ranks == 0) throw error(errc::argument, {"rows are dealt to 0 ranks; give at least 1"});
  if (ranks > 0xffffffffu || costs.size() > 0xffffffffu)
    throw error(errc::argument, {costs.size(), " rows are dealt to ", ranks,
                                 " ranks, and both must be below 2^32; deal the rows of one step"});
  ranks_ = ranks;
  each_ = costs.size() / ranks;
  more_ = costs.size() % ranks;
  take_costs(costs);
  deal_longest_first();
  if (in_order_is_better()) deal_in_order();
  exchange();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::sort(rows_.begin() + static_cast<std::ptrdiff_t>(begin_of(rank)),
              rows_.begin() + static_cast<std::ptrdiff_t>(begin_of(rank + 1)));
  }
}

PENSTOCK_INLINE void equal_work::take_costs(std::span<const std::uint64_t> costs) {
  std::uint64_t most = 0;
  for (const std::uint64_t cost : costs) most = std::max(most, cost);
  const int bits = static_cast<int>(std::bit_width(most) + std::bit_width(costs.size()));
  costs_.assign(costs.begin(), costs.end());
  if (bits > 63)
    for (std::uint64_t& cost : costs_) cost >>= bits - 63;
  order_.resize(costs.size());
  rows_.resize(costs.size());
  std::iota(order_.begin(), order_.end(), 0u);
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return costs_[a] != costs_[b] ? costs_[a] > costs_[b] : a < b;
  });
}

PENSTOCK_INLINE void equal_work::deal_longest_first() {
  // A heap of the ranks that still take a row, the one with the least work on top.
  const auto after = [](const share& a, const share& b) {
    return a.work != b.work ? a.work > b.work : a.rank > b.rank;
  };
  shares_.clear();
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    shares_.push_back({0, static_cast<std::uint32_t>(rank), 0});
  auto open = shares_.end();
  if (each_ == 0) open = shares_.begin() + static_cast<std::ptrdiff_t>(more_);
  for (const std::uint32_t row : order_) {
    std::pop_heap(shares_.begin(), open, after);
    share& s = *(open - 1);
    const std::size_t begin = begin_of(s.rank), end = begin_of(s.rank + std::size_t{1});
    rows_[begin + s.rows++] = row;
    s.work += costs_[row];
    if (begin + s.rows == end)
      --open;  // has all of its rows
    else
      std::push_heap(shares_.begin(), open, after);
  }
}

PENSTOCK_INLINE bool equal_work::in_order_is_better() {
  std::uint64_t most = 0, in_order = 0;
  for (const share& s : shares_) most = std::max(most, s.work);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::uint64_t work = 0;
    for (std::size_t row = begin_of(rank); row < begin_of(rank + 1); ++row) work += costs_[row];
    in_order = std::max(in_order, work);
  }
  return in_order < most;
}

/// Each rank's consecutive rows, the most costly first.
PENSTOCK_INLINE void equal_work::deal_in_order() {
  for (std::size_t rank = 0; rank < ranks_; ++rank) shares_[rank] = {0, static_cast<std::uint32_t>(rank), 0};
  const std::size_t longer = more_ * (each_ + 1);  // rows of the ranks that have one more
  for (const std::uint32_t row : order_) {
    const std::size_t rank = row < longer ? row / (each_ + 1) : more_ + (row - longer) / each_;
    rows_[begin_of(rank) + shares_[rank].rows++] = row;
    shares_[rank].work += costs_[row];
  }
}

PENSTOCK_INLINE void equal_work::exchange() {
  const auto less = [](const share& a, const share& b) {
    return a.work != b.work ? a.work < b.work : a.rank < b.rank;
  };
  std::sort(shares_.begin(), shares_.end(), less);
  std::size_t looks = 32 * costs_.size();
  for (std::size_t least = 0; least + 1 < ranks_;) {
    const std::size_t cost = 2 * (each_ + 1);
    if (looks < cost) return;
    looks -= cost;
    share& most = shares_.back();
    if (most.work == shares_[least].work) return;
    if (!exchange(most, shares_[least])) {
      ++least;
      continue;
    }
    if (looks < ranks_) return;
    looks -= ranks_;
    // Two have changed: the others are in order.
    const share a = shares_.back(), b = shares_[least];
    shares_.pop_back();
    shares_.erase(shares_.begin() + static_cast<std::ptrdiff_t>(least));
    for (const share& s : {a, b})
      shares_.insert(std::upper_bound(shares_.begin(), shares_.end(), s, less), s);
    least = 0;
  }
}

/// Exchanges the two rows of these ranks that make their work most equal; false if none does.
PENSTOCK_INLINE bool equal_work::exchange(share& most, share& least) {
  const std::size_t others = begin_of(least.rank), others_end = begin_of(least.rank + std::size_t{1});
  const auto apart = static_cast<std::int64_t>(most.work - least.work);
  std::int64_t best = 0;  // by how much the larger work becomes less
  std::size_t best_mine = 0, best_others = 0;
  const auto moved = [&](std::size_t i, std::size_t j) {
    return static_cast<std::int64_t>(costs_[rows_[i]]) - static_cast<std::int64_t>(costs_[rows_[j]]);
  };
  const auto look = [&](std::size_t i, std::size_t j) {
    const std::int64_t gain = std::min(moved(i, j), apart - moved(i, j));
    if (gain <= best) return;
    best = gain;
    best_mine = i;
    best_others = j;
  };
  // Half of the difference is best: of the other rank's rows, the first that moves as much, or the one
  // before.
  std::size_t j = others;
  for (std::size_t i = begin_of(most.rank); i < begin_of(most.rank + std::size_t{1}); ++i) {
    while (j < others_end && 2 * moved(i, j) < apart) ++j;
    if (j < others_end) look(i, j);
    if (j > others) look(i, j - 1);
  }
  if (best == 0) return false;
  const auto difference = static_cast<std::uint64_t>(moved(best_mine, best_others));
  most.work -= difference;
  least.work += difference;
  std::swap(rows_[best_mine], rows_[best_others]);
  settle(most.rank, best_mine);
  settle(least.rank, best_others);
  return true;
}

/// Moves a rank's row to where it belongs, the most costly first.
PENSTOCK_INLINE void equal_work::settle(std::size_t rank, std::size_t at) {
  const auto before = [&](std::size_t a, std::size_t b) {
    return costs_[rows_[a]] != costs_[rows_[b]] ? costs_[rows_[a]] > costs_[rows_[b]] : rows_[a] < rows_[b];
  };
  for (; at > begin_of(rank) && before(at, at - 1); --at) std::swap(rows_[at], rows_[at - 1]);
  for (; at + 1 < begin_of(rank + 1) && before(at + 1, at); ++at) std::swap(rows_[at], rows_[at + 1]);
}

}  // namespace penstock::inline v0_1
