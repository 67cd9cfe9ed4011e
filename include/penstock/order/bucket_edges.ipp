// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/bucket_edges.hpp>

#include <penstock/core/message.hpp>

#include <algorithm>
#include <limits>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::uint64_t bucket_edges::checked_buckets(std::uint64_t buckets) {
  if (buckets == 0 || buckets > 255)
    throw error(errc::argument, {"bucket_by has 1 to 255 buckets, not ", buckets}).in_stage("bucket_by");
  return buckets;
}

PENSTOCK_INLINE bucket_edges::bucket_edges(std::vector<std::uint64_t> edges) : edges_(std::move(edges)) {
  if (edges_.empty())
    throw error(errc::argument, "bucket_by has no edges; give it one or more, or a number of buckets")
        .in_stage("bucket_by");
  (void)checked_buckets(edges_.size() + 1);
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    if (edges_[i] >> 63 != 0)
      throw error(errc::argument, {"an edge of bucket_by is negative or absurd: ", edges_[i],
                                   " as an unsigned number; it is below 2^63"})
          .in_stage("bucket_by");
    if (i != 0 && edges_[i] <= edges_[i - 1])
      throw error(errc::argument, {"the edges of bucket_by ascend, but ", edges_[i], " follows ",
                                   edges_[i - 1], "; sort them, and write each once"})
          .in_stage("bucket_by");
  }
}

PENSTOCK_INLINE std::string bucket_edges::describe() const {
  if (wanted_ != 0)
    return detail::text({wanted_, wanted_ == 1 ? " bucket" : " buckets", least_ ? " of least padding" : ""});
  std::string words = edges_.size() == 1 ? "edge " : "edges ";
  for (std::size_t i = 0; i < edges_.size(); ++i) words += (i == 0 ? "" : ", ") + std::to_string(edges_[i]);
  return words;
}

namespace detail {

PENSTOCK_INLINE bucket_table::bucket_table(const std::vector<std::uint64_t>& edges) : starts_{0} {
  for (const std::uint64_t edge : edges) starts_.push_back(edge + 1);
  for (std::uint64_t length = 0; length < looked_up; ++length)
    short_.push_back(static_cast<std::uint8_t>(last_not_above(starts_.data(), starts_.size(), length)));
}

PENSTOCK_INLINE std::vector<std::uint64_t> bucket_table::edges() const {
  std::vector<std::uint64_t> upper;
  for (std::size_t i = 1; i < starts_.size(); ++i) upper.push_back(starts_[i] - 1);
  return upper;
}

PENSTOCK_INLINE std::uint64_t length_counts::longest_of(std::size_t cell) noexcept {
  const std::size_t shift = cell < std::size_t{2} << bits ? 0 : (cell >> bits) - 1;
  const std::uint64_t high = cell - (shift << bits);
  return ((high + 1) << shift) - 1;
}

PENSTOCK_INLINE double length_counts::total() const noexcept {
  double sum = 0;
  for (const cell& one : cells_) sum += one.sum;
  return sum;
}

PENSTOCK_INLINE std::vector<std::uint64_t> length_counts::equal_sums(std::uint64_t buckets) const {
  std::vector<std::uint64_t> found;
  const double all = total();
  double sum = 0, at_edge = 0;  // a cell may be more than a bucket's share; then the others divide the rest
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].sum == 0) continue;
    sum += cells_[i].sum;
    if (found.size() + 1 == buckets || sum >= all) break;
    if ((sum - at_edge) * static_cast<double>(buckets - found.size()) < all - at_edge) continue;
    found.push_back(longest_of(i));
    at_edge = sum;
  }
  return found;
}

PENSTOCK_INLINE std::vector<std::uint64_t> length_counts::least_padding(std::uint64_t buckets) const {
  struct candidate {
    std::uint64_t edge;
    double longest, count;  // the lengths up to it
  };
  std::vector<candidate> at{{0, 0, 0}};
  const double part = total() / 1024;
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].count == 0) continue;
    count += cells_[i].count;
    sum += cells_[i].sum;
    const std::uint64_t longest = longest_of(i);
    const candidate here{longest, static_cast<double>(longest), count};
    if (at.size() == 1 || sum >= part) {
      at.push_back(here);
      sum = 0;
    } else {
      at.back() = here;
    }
  }
  const std::size_t n = at.size();
  if (n <= 2) return {};
  // slots[j]: the fewest slots for the lengths up to j in so many buckets; from[k][j]: where the last begins
  std::vector<double> slots(n), fewer(n);
  for (std::size_t j = 0; j < n; ++j) slots[j] = at[j].longest * at[j].count;
  std::vector<std::vector<std::uint16_t>> from;
  const auto best_from = [&](std::size_t j, std::size_t low, std::size_t high) {
    std::size_t best = low;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = low; i <= std::min(high, j); ++i) {
      const double here = fewer[i] + at[j].longest * (at[j].count - at[i].count);
      if (here < least) {
        least = here;
        best = i;
      }
    }
    slots[j] = least;
    return best;
  };
  struct range {
    std::size_t first, end, low, high;
  };
  for (std::uint64_t k = 1; k < std::min<std::uint64_t>(buckets, n - 1); ++k) {
    slots.swap(fewer);
    std::vector<std::uint16_t>& begins = from.emplace_back(n);
    std::vector<range> open{{0, n, 0, n - 1}};
    while (!open.empty()) {
      const range r = open.back();
      open.pop_back();
      if (r.first >= r.end) continue;
      const std::size_t middle = r.first + (r.end - r.first) / 2, best = best_from(middle, r.low, r.high);
      begins[middle] = static_cast<std::uint16_t>(best);
      open.push_back({r.first, middle, r.low, best});
      open.push_back({middle + 1, r.end, best, r.high});
    }
  }
  std::vector<std::uint64_t> found;
  std::size_t j = n - 1;
  for (auto begins = from.rbegin(); begins != from.rend(); ++begins) {
    j = (*begins)[j];
    if (j == 0) break;
    found.push_back(at[j].edge);
  }
  std::reverse(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
