// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/joined/window_places.hpp>

#include <bit>
#include <cmath>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void window_places::add_list(std::string_view column, const row_offsets& given,
                                             const window_options& options) {
  const std::string name = column.empty() ? std::string("`.at`") : text({"column '", column, "'"});
  constexpr std::int64_t maximum = std::int64_t{1} << 62;
  offsets made{name, given.rows(), {}};
  for (const std::int64_t row : made.rows)
    if (row < -maximum || row > maximum)
      throw error(errc::argument, {"windows: the offset ", row, " of ", name, " is beyond 2^62 rows"});
  if (!given.seconds().empty()) {
    for (const double at : given.seconds()) {
      if (!std::isfinite(at))
        throw error(errc::argument, {"windows: the offset ", number_text(at), " of ", name, " is no time"});
      if (options.rate == 0) continue;
      const double exact = at * options.rate, nearest = std::nearbyint(exact);
      if (std::fabs(nearest) > 0x1p62)
        throw error(errc::argument,
                    {"windows: the offset ", number_text(at), " s of ", name, " is beyond 2^62 rows"});
      if (std::fabs(exact - nearest) / options.rate > options.tolerance)
        throw error(
            errc::argument,
            {"windows: the offset ", number_text(at), " s of ", name, " lies between rows: at ",
             number_text(options.rate), " rows per second the nearest is at ",
             number_text(nearest / options.rate), " s; write a multiple of ", number_text(1 / options.rate),
             " s, or a larger .tolerance than ", number_text(options.tolerance)});
      made.rows.push_back(static_cast<std::int64_t>(nearest));
    }
    if (options.rate == 0) {
      if (known_.times().empty() && known_.rows() != 0)
        throw error(
            errc::argument,
            {"windows: the offsets of ", name,
             " are in seconds, and the times of rows are not known; write `.rate`, in rows per second, "
             "or name the column of times, windows<\"episode\", \"timestamp\">(...), or give it to "
             "episodes_of"});
      made.seconds = given.seconds();
    }
  }
  if (made.rows.empty() && made.seconds.empty())
    throw error(errc::argument, {"windows: ", name, " names no rows; write {-1, 0, 1} or the like"});
  lists_.push_back(std::move(made));
}

PENSTOCK_INLINE window_places::window_places(episodes known, const window_options& options,
                                             std::span<const column_offsets> lists)
    : known_(std::move(known)), stride_(options.stride), tolerance_(options.tolerance) {
  if (options.stride == 0)
    throw error(errc::argument, "windows: `.stride` is 0; write 1 for a window at each row");
  if (!std::isfinite(options.rate) || options.rate < 0)
    throw error(errc::argument, {"windows: `.rate` is ", number_text(options.rate),
                                 "; write how many rows there are per second, or leave it out"});
  if (!(options.tolerance >= 0))
    throw error(errc::argument, {"windows: `.tolerance` is ", number_text(options.tolerance),
                                 "; write seconds, such as 1e-4"});
  if (!lists.empty()) {
    if (options.length != 0 || !options.at.empty())
      throw error(
          errc::argument,
          "windows: `.length` and `.at` are for all columns, and some have offsets of their own; write "
          "column_at<...> for each, or `.at` alone");
    for (const column_offsets& one : lists) add_list(one.column, one.offsets, options);
  } else if (options.length != 0) {
    if (!options.at.empty())
      throw error(errc::argument, "windows: `.length` and `.at` both say which rows a window has; write one");
    if (options.length > known_.longest())
      throw error(errc::argument, {"windows: no episode has ", options.length, " rows; the longest of ",
                                   known_.count(), " has ", known_.longest()});
    if (constexpr std::uint64_t most = std::uint64_t{1} << 31; options.length > most)
      throw error(errc::limit,
                  {"windows: a window has at most ", most, " rows, and `.length` is ", options.length});
    add_list({}, row_offsets::from_to(0, static_cast<std::int64_t>(options.length) - 1), options);
  } else if (options.at.empty()) {
    throw error(errc::argument,
                "windows: neither `.length` nor `.at` says which rows a window has; write {.length = 64}, or "
                "{.at = {-1, 0, 1}}");
  } else {
    add_list({}, options.at, options);
  }

  // the rows that an episode must have before and after that of a window
  std::uint64_t before = 0, after = 0;
  if (options.length != 0 || !options.pad) {
    for (const offsets& one : lists_) {
      if (!one.seconds.empty())
        throw error(errc::argument, {"windows: `.pad = false` counts rows, and the offsets of ", one.column,
                                     " are times; write `.rate`, or leave it out and look at the mask"});
      for (const std::int64_t row : one.rows) {
        before = std::max(before, static_cast<std::uint64_t>(std::max<std::int64_t>(0, -row)));
        after = std::max(after, static_cast<std::uint64_t>(std::max<std::int64_t>(0, row)));
      }
    }
  }
  first_step_ = before;
  const std::span<const std::uint64_t> starts = known_.starts();
  firsts_.reserve(starts.size());
  firsts_.push_back(0);
  for (std::size_t e = 0; e + 1 < starts.size(); ++e) {
    const std::uint64_t rows = starts[e + 1] - starts[e];
    const std::uint64_t around = before + after;  // at most 2^63
    firsts_.push_back(firsts_.back() + (rows > around ? (rows - around - 1) / stride_ + 1 : 0));
  }
  if (firsts_.back() == 0 && known_.rows() != 0)
    throw error(errc::argument,
                {"windows: no episode has the ", before + after + 1, " rows of a window; the longest of ",
                 known_.count(), " has ", known_.longest(), "; leave out `.pad = false`"});
}

PENSTOCK_INLINE window_row window_places::row_in_time(const window_place& at, const offsets& all,
                                                      std::size_t k) const {
  const std::span<const double> times = known_.times();
  const double wanted = times[to_size(at.row)] + all.seconds[k];
  if (wanted < times[to_size(at.begin)] - tolerance_) return {at.begin, true};
  if (wanted > times[to_size(at.end - 1)] + tolerance_) return {at.end - 1, true};
  const auto begin = times.begin() + static_cast<std::ptrdiff_t>(at.begin),
             end = times.begin() + static_cast<std::ptrdiff_t>(at.end);
  auto nearest = std::lower_bound(begin, end, wanted);
  if (nearest == end || (nearest != begin && wanted - nearest[-1] <= *nearest - wanted)) --nearest;
  const auto row = static_cast<std::uint64_t>(nearest - times.begin());
  if (std::fabs(*nearest - wanted) > tolerance_)
    throw error(errc::missing,
                {"windows: there is no row at ", number_text(wanted), " s, which is ",
                 number_text(all.seconds[k]), " s from row ", at.row, " (", all.column,
                 "); the nearest, row ", row, ", is at ", number_text(*nearest),
                 " s: write other offsets, or a larger .tolerance than ", number_text(tolerance_)});
  return {row, false};
}

PENSTOCK_INLINE std::vector<std::uint64_t> window_places::starts_among(
    std::span<const std::uint64_t> shards) const {
  if (size() == 0) return {0, 0};
  std::vector<std::uint64_t> made{0};
  const std::span<const std::uint64_t> starts = known_.starts();
  for (const std::uint64_t shard : shards) {
    // the first window whose row is not before the shard
    const auto next = std::upper_bound(starts.begin() + 1, starts.end() - 1, shard);
    const auto e = static_cast<std::size_t>(next - starts.begin() - 1);
    const std::uint64_t first = starts[e] + first_step_;
    const std::uint64_t before = shard <= first ? 0 : (shard - first - 1) / stride_ + 1;
    const std::uint64_t window = firsts_[e] + std::min(before, firsts_[e + 1] - firsts_[e]);
    if (window > made.back() && window < size()) made.push_back(window);
  }
  made.push_back(size());
  return made;
}

PENSTOCK_INLINE std::uint64_t window_places::fingerprint() const {
  class fingerprint h;
  h.add("windows", known_.fingerprint(), stride_, first_step_, size(), lists_.size());
  for (const offsets& one : lists_) {
    h.add(one.column, one.rows.size(), one.seconds.size());
    for (const std::int64_t row : one.rows) h.add(row);
    for (const double at : one.seconds) h.add(std::bit_cast<std::uint64_t>(at));
  }
  if (!known_.times().empty()) h.add(std::bit_cast<std::uint64_t>(tolerance_));
  return h.value();
}

PENSTOCK_INLINE std::string window_places::describe() const {
  std::string line = text({size(), " windows of "});
  for (std::size_t i = 0; i < lists_.size(); ++i)
    append(line, {i == 0 ? "" : ", ", length(i), " rows", lists_.size() == 1 ? "" : " of ",
                  lists_.size() == 1 ? std::string_view() : std::string_view(lists_[i].column)});
  append(line, {" in ", known_.count(), " episodes"});
  return line;
}

}  // namespace penstock::inline v0_1::detail
