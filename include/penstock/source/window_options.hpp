// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/name.hpp>

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which rows a window has, relative to its own: `{-1, 0, 1}` in rows, `{-0.1, 0.0, 0.1}` in seconds. Whole
/// numbers are rows; if one has a decimal point, all are seconds, as in LeRobot's `delta_timestamps`.
///
///     const row_offsets past_and_future{-1, 0, 1};
///     const row_offsets chunk = row_offsets::from_to(0, 15);  // 16 rows
///     const row_offsets seconds{-0.1, 0, 0.1};
class row_offsets {
 public:
  /// None.
  row_offsets() = default;
  template <class... Numbers>
    requires(sizeof...(Numbers) != 0 && (std::is_arithmetic_v<Numbers> && ...))
  row_offsets(Numbers... offsets) {  // NOLINT(google-explicit-constructor): so that {-1, 0, 1} will do
    if constexpr ((std::integral<Numbers> && ...))
      rows_ = {static_cast<std::int64_t>(offsets)...};
    else
      seconds_ = {static_cast<double>(offsets)...};
  }
  row_offsets(std::vector<std::int64_t> rows) : rows_(std::move(rows)) {}     // NOLINT: as above
  row_offsets(std::vector<double> seconds) : seconds_(std::move(seconds)) {}  // NOLINT: as above
  /// The rows from `first` to `last`, both included; none if `last` is before `first`.
  [[nodiscard]] static row_offsets from_to(std::int64_t first, std::int64_t last) {
    std::vector<std::int64_t> rows;
    for (std::int64_t at = first; at < last; ++at) rows.push_back(at);
    if (first <= last) rows.push_back(last);  // apart, as nothing is behind the greatest number
    return rows;
  }

  [[nodiscard]] bool empty() const noexcept { return rows_.empty() && seconds_.empty(); }
  /// The offsets, unless they are in seconds.
  [[nodiscard]] const std::vector<std::int64_t>& rows() const noexcept { return rows_; }
  /// The offsets, if they are in seconds.
  [[nodiscard]] const std::vector<double>& seconds() const noexcept { return seconds_; }

 private:
  std::vector<std::int64_t> rows_;
  std::vector<double> seconds_;
};

/// The offsets of one column of `windows`: `column_at<"action">{0, 1, 2}`.
template <fixed_string Name>
struct column_at : row_offsets {
  using name_type = name_of<Name>;
  using row_offsets::row_offsets;
  column_at(row_offsets offsets) : row_offsets(std::move(offsets)) {}  // NOLINT: as row_offsets
};

/// Options of `windows`.
struct window_options {
  /// Windows of this many rows, one behind the other, which lie entirely in an episode; or else 0.
  std::uint64_t length = 0;
  /// The distance in rows from one window to the next.
  std::uint64_t stride = 1;
  /// The rows of a window relative to its own, which may lie outside of the episode: then the episode's first
  /// or last row stands there, and the mask says so.
  row_offsets at = {};
  /// With `at` or `column_at`: whether there are windows that reach beyond their episode. Otherwise they are
  /// left out.
  bool pad = true;
  /// Rows per second, for offsets in seconds.
  double rate = 0;
  /// How far, in seconds, a row may be from the time that is asked for.
  double tolerance = 1e-4;
};

}  // namespace penstock::inline v0_1
