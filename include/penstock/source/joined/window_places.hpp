// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/source/episodes.hpp>
#include <penstock/source/window_options.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The place of a window: its row, and the rows of its episode.
struct window_place {
  std::uint64_t episode = 0;
  std::uint64_t begin = 0, end = 0;
  std::uint64_t row = 0;
};
/// A row of a window; `pad`: the episode's first or last row stands for one that it does not have.
struct window_row {
  std::uint64_t row = 0;
  bool pad = false;
};

/// The offsets of a column, and its name in errors; empty for those that all columns have.
struct column_offsets {
  std::string_view column;
  row_offsets offsets;
};

/// Where windows are, and which rows each has: arithmetic, and a binary search among episodes.
class window_places {
 public:
  /// `lists`: the offsets of each column that has its own; empty if `options` says them for all. Throws
  /// `errc::argument`.
  window_places(episodes known, const window_options& options, std::span<const column_offsets> lists);

  [[nodiscard]] std::uint64_t size() const noexcept { return firsts_.back(); }
  [[nodiscard]] const episodes& known() const noexcept { return known_; }
  /// The place of window i, which must be below `size()`.
  [[nodiscard]] window_place at(std::uint64_t i) const noexcept {
    const auto next = std::upper_bound(firsts_.begin() + 1, firsts_.end() - 1, i);
    const auto episode = static_cast<std::size_t>(next - firsts_.begin() - 1);
    const std::span<const std::uint64_t> starts = known_.starts();
    return {episode, starts[episode], starts[episode + 1],
            starts[episode] + first_step_ + (i - firsts_[episode]) * stride_};
  }
  /// How many rows a list of offsets has.
  [[nodiscard]] std::size_t length(std::size_t list) const noexcept {
    return std::max(lists_[list].rows.size(), lists_[list].seconds.size());
  }
  [[nodiscard]] std::size_t lists() const noexcept { return lists_.size(); }
  /// Row k of a list, at that place. Throws `errc::missing` if there is no row at that time.
  [[nodiscard]] window_row row(const window_place& at, std::size_t list, std::size_t k) const {
    const offsets& all = lists_[list];
    if (all.rows.empty()) [[unlikely]]
      return row_in_time(at, all, k);
    const std::uint64_t row = at.row + static_cast<std::uint64_t>(all.rows[k]);  // wraps
    if (all.rows[k] < 0 && row - at.begin >= at.row - at.begin) [[unlikely]]
      return {at.begin, true};
    if (all.rows[k] >= 0 && row >= at.end) [[unlikely]]
      return {at.end - 1, true};
    return {row, false};
  }
  /// Where windows begin whose rows are in the shards that begin there.
  [[nodiscard]] std::vector<std::uint64_t> starts_among(std::span<const std::uint64_t> shards) const;
  /// Covers which rows each window has.
  [[nodiscard]] std::uint64_t fingerprint() const;
  /// "42 windows of 16 rows in 3 episodes".
  [[nodiscard]] std::string describe() const;

 private:
  struct offsets {
    std::string column;
    std::vector<std::int64_t> rows;
    std::vector<double> seconds;
  };

  [[nodiscard]] window_row row_in_time(const window_place& at, const offsets& all, std::size_t k) const;
  void add_list(std::string_view column, const row_offsets& given, const window_options& options);

  episodes known_;
  std::vector<offsets> lists_;
  std::vector<std::uint64_t> firsts_;  // the first window of each episode, and the number of windows
  std::uint64_t stride_ = 1;
  std::uint64_t first_step_ = 0;  // the first row of an episode that has a window
  double tolerance_ = 0;
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/source/joined/window_places.ipp>
#endif
