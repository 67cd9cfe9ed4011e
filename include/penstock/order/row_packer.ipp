// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/row_packer.hpp>

#include <penstock/core/error.hpp>

#include <algorithm>
#include <numeric>

namespace penstock::inline v0_1 {

namespace detail {

/// Makes a vector at least this long; it never becomes shorter.
template <class T>
void at_least(std::vector<T>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

}  // namespace detail

PENSTOCK_INLINE row_packer::row_packer(row_limits limits)
    : limits_(limits),
      capacity_(static_cast<std::uint32_t>(limits.capacity)),
      max_samples_(static_cast<std::uint32_t>(
          limits.max_samples == 0
              ? detail::rows_by_room::none
              : std::min<std::uint64_t>(limits.max_samples, detail::rows_by_room::none))) {
  if (limits.capacity == 0)
    throw error(errc::argument, {"a row with a capacity of 0 holds no sample; give it at least 1"});
  if (limits.capacity >> 31 != 0)
    throw error(errc::argument, {"the capacity of a row is ", limits.capacity,
                                 ", and it is below 2^31; give the number of tokens in one sequence"});
}

PENSTOCK_INLINE void row_packer::pack(std::span<const std::uint32_t> lengths) {
  rows_ = 0;
  check(lengths);
  if (lengths.empty()) return;
  try {
    detail::at_least(items_, lengths.size());
    detail::at_least(begins_, 1);
    begins_[0] = 0;
    if (limits_.how == packing::in_order) return in_order(lengths);
    detail::at_least(order_, lengths.size());
    detail::at_least(row_of_, lengths.size());
    if (limits_.how == packing::best_fit)
      best_fit(lengths);
    else
      first_fit(lengths);
    gather(lengths.size());
  } catch (...) {
    rows_ = 0;  // out of memory
    throw;
  }
}

PENSTOCK_INLINE std::size_t row_packer::count(lengths_view lengths) {
  constexpr std::uint32_t few = 8;  // counters for each sample: clearing more takes longer than sorting
  rows_ = 0;
  const std::uint32_t longest = check(lengths);
  if (limits_.how == packing::best_fit && max_samples_ == detail::rows_by_room::none &&
      longest / few < lengths.size())
    return count_best_fit(lengths, longest);
  pack(lengths);
  return std::exchange(rows_, 0);
}

/// Returns the longest.
PENSTOCK_INLINE std::uint32_t row_packer::check(lengths_view lengths) const {
  if (lengths.size() >= detail::rows_by_room::none)
    throw error(errc::argument, {"rows are packed from ", lengths.size(),
                                 " samples, and it must be fewer than 2^32 - 1; pack them in windows"});
  std::uint32_t longest = 0;
  for (const std::uint32_t length : lengths) longest = std::max(longest, length);
  if (longest <= capacity_) return longest;
  const std::size_t where = static_cast<std::size_t>(
      std::find_if(lengths.begin(), lengths.end(), [&](std::uint32_t n) { return n > capacity_; }) -
      lengths.begin());
  throw error(errc::argument, {"sample ", where, " has a length of ", lengths[where], ", and a row holds ",
                               capacity_, "; truncate it, split it or leave it out"});
}

/// Sorts by counting, in as many passes as make the counters small beside the samples.
PENSTOCK_INLINE void row_packer::sort_by_length(lengths_view lengths) {
  const std::size_t n = lengths.size();
  std::uint32_t longest = 0, least = lengths[0];
  for (const std::uint32_t length : lengths) {
    longest = std::max(longest, length);
    least = std::min(least, length);
  }
  const int bits = static_cast<int>(std::bit_width(longest - least));
  const int widest = std::clamp(static_cast<int>(std::bit_width(n)), 8, 13);
  const int passes = std::max(1, (bits + widest - 1) / widest),
            each = std::max(1, (bits + passes - 1) / passes);
  const std::size_t values = std::size_t{1} << each;
  const std::uint32_t mask = static_cast<std::uint32_t>(values - 1);
  detail::at_least(counts_, values);
  for (int pass = 0; pass < passes; ++pass) {
    const auto key = [&](std::uint32_t sample) {
      return (longest - lengths[sample]) >> (pass * each) & mask;
    };
    std::fill_n(counts_.begin(), values, 0u);
    for (std::uint32_t i = 0; i < n; ++i) ++counts_[key(i)];
    std::uint32_t before = 0;
    for (std::size_t k = 0; k < values; ++k) before += std::exchange(counts_[k], before);
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t sample = pass == 0 ? i : order_[i];
      row_of_[counts_[key(sample)]++] = sample;
    }
    order_.swap(row_of_);
  }
}

PENSTOCK_INLINE void row_packer::best_fit(lengths_view lengths) {
  sort_by_length(lengths);
  rooms_.reset(std::max(1u, capacity_ - 1));
  const std::size_t n = lengths.size();
  for (std::size_t first = 0; first < n;) {
    const std::uint32_t length = lengths[order_[first]];
    if (length == 0) return put_empty(first, n);
    std::size_t last = first + 1;
    while (last < n && lengths[order_[last]] == length) ++last;
    put_equal(length, first, last);
    first = last;
  }
}

/// Puts samples of one length, of which as many go into a row as fit: no row has less room and fits one.
PENSTOCK_INLINE void row_packer::put_equal(std::uint32_t length, std::size_t first, std::size_t last) {
  constexpr std::uint32_t none = detail::rows_by_room::none;
  while (first != last) {
    const std::uint32_t found = rooms_.least(length), room = found == none ? capacity_ : found;
    const std::uint32_t each = room - length < length ? 1 : room / length, left = room - each * length;
    std::uint32_t row = found == none ? none : rooms_.first(found);
    std::uint32_t newest = none, oldest = none;  // those that are left with `left`
    do {
      if (found == none) {
        row = static_cast<std::uint32_t>(rows_);
        open_row();
      }
      open& filled = open_[row];
      const std::uint32_t next = filled.next;
      const std::uint32_t put = static_cast<std::uint32_t>(
          std::min<std::size_t>(std::min(each, max_samples_ - filled.samples), last - first));
      std::fill_n(row_of_.begin() + static_cast<std::ptrdiff_t>(first), put, row);
      first += put;
      filled.samples += put;
      if (filled.samples != max_samples_) {
        if (put == each) {
          filled.next = newest;
          newest = row;
          if (oldest == none) oldest = row;
        } else {
          push(room - put * length, row, row);
        }
      }
      row = next;
    } while (first != last && (found == none || row != none));
    if (found != none) {
      if (row == none)
        rooms_.remove(found);
      else
        rooms_.first(found) = row;
    }
    if (newest != none && left != 0) push(left, newest, oldest);
  }
}

/// Best fit decreasing with numbers in place of samples and rows: `rooms_` has for each room how many rows
/// have it.
PENSTOCK_INLINE std::size_t row_packer::count_best_fit(lengths_view lengths, std::uint32_t longest) {
  detail::at_least(counts_, std::size_t{longest} + 1);
  std::fill_n(counts_.begin(), std::size_t{longest} + 1, 0u);
  for (const std::uint32_t length : lengths) ++counts_[length];
  rooms_.reset(std::max(1u, capacity_ - 1));
  std::size_t rows = longest == 0 ? 1 : 0;  // for samples that all have length 0
  for (std::uint32_t length = longest; length != 0; --length)
    if (counts_[length] != 0) rows += count_equal(length, counts_[length]);
  return rows;
}

/// Returns how many rows the samples of one length open.
PENSTOCK_INLINE std::uint32_t row_packer::count_equal(std::uint32_t length, std::uint32_t samples) {
  constexpr std::uint32_t none = detail::rows_by_room::none;
  const auto add = [&](std::uint32_t room, std::uint32_t rows) {
    std::uint32_t& there = rooms_.make(room);
    there = rows + (there == none ? 0 : there);
  };
  std::uint32_t opened = 0;
  while (samples != 0) {
    const std::uint32_t found = rooms_.least(length), room = found == none ? capacity_ : found;
    const std::uint32_t each = room - length < length ? 1 : room / length, left = room - each * length;
    const std::uint32_t there = found == none ? none : rooms_.first(found);
    const std::uint32_t full = std::min(each == 1 ? samples : samples / each, there);
    samples -= full * each;
    const std::uint32_t last = full == there ? 0 : samples;  // those in a row that remains with more room
    const std::uint32_t used = full + (last != 0 ? 1 : 0);
    if (found == none)
      opened += used;
    else if (used == there)
      rooms_.remove(found);
    else
      rooms_.first(found) = there - used;
    samples -= last;
    if (full != 0 && left != 0) add(left, full);
    if (last != 0) add(room - last * length, 1);
  }
  return opened;
}

/// Puts samples of length 0, which every row has room for.
PENSTOCK_INLINE void row_packer::put_empty(std::size_t first, std::size_t last) {
  for (std::uint32_t row = 0; first != last; ++row) {
    if (row == rows_) open_row();
    const std::size_t put = std::min<std::size_t>(max_samples_ - open_[row].samples, last - first);
    std::fill_n(row_of_.begin() + static_cast<std::ptrdiff_t>(first), put, row);
    open_[row].samples += static_cast<std::uint32_t>(put);
    first += put;
  }
}

PENSTOCK_INLINE void row_packer::open_row() {
  detail::at_least(open_, ++rows_);
  open_[rows_ - 1] = {detail::rows_by_room::none, 0};
}

/// Adds rows with this room, linked from the newest to the oldest, to the list.
PENSTOCK_INLINE void row_packer::push(std::uint32_t room, std::uint32_t newest, std::uint32_t oldest) {
  std::uint32_t& first = rooms_.make(room);
  open_[oldest].next = first;
  first = newest;
}

PENSTOCK_INLINE void row_packer::first_fit(lengths_view lengths) {
  // The leaves are the rows, with one more than their room, and 0 for those that are closed. Rows that are
  // not open yet have all of the capacity, so the first row that fits may be a new one.
  const std::size_t n = lengths.size(), leaves = std::bit_ceil(n);
  detail::at_least(tree_, 2 * leaves);
  std::fill_n(tree_.begin(), 2 * leaves, capacity_ + 1);
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t node = 1;
    while (node < leaves) node = 2 * node + (tree_[2 * node] <= lengths[i] ? 1 : 0);
    const std::uint32_t row = static_cast<std::uint32_t>(node - leaves);
    if (row == rows_) open_row();
    order_[i] = static_cast<std::uint32_t>(i);
    row_of_[i] = row;
    tree_[node] = ++open_[row].samples == max_samples_ ? 0 : tree_[node] - lengths[i];
    for (node /= 2; node != 0; node /= 2) {
      const std::uint32_t room = std::max(tree_[2 * node], tree_[2 * node + 1]);
      if (std::exchange(tree_[node], room) == room) break;
    }
  }
}

PENSTOCK_INLINE void row_packer::in_order(lengths_view lengths) {
  std::iota(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(lengths.size()), 0u);
  std::uint32_t room = 0, more = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (rows_ == 0 || lengths[i] > room || more == 0) {
      detail::at_least(begins_, ++rows_ + 1);
      begins_[rows_ - 1] = static_cast<std::uint32_t>(i);
      room = capacity_;
      more = max_samples_;
    }
    room -= lengths[i];
    --more;
  }
  begins_[rows_] = static_cast<std::uint32_t>(lengths.size());
}

/// The samples by row, in the order in which they were put.
PENSTOCK_INLINE void row_packer::gather(std::size_t samples) {
  detail::at_least(begins_, rows_ + 1);
  std::uint32_t before = 0;
  for (std::size_t r = 0; r < rows_; ++r) {
    begins_[r + 1] = before;  // moves to the row's end while samples are written
    before += open_[r].samples;
  }
  for (std::size_t i = 0; i < samples; ++i) items_[begins_[row_of_[i] + 1]++] = order_[i];
}

}  // namespace penstock::inline v0_1
