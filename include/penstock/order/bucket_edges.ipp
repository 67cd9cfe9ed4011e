// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/bucket_edges.hpp>

#include <penstock/core/message.hpp>

#include <numeric>

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
  if (wanted_ != 0) return detail::text({wanted_, wanted_ == 1 ? " bucket" : " buckets"});
  std::string words = edges_.size() == 1 ? "edge " : "edges ";
  for (std::size_t i = 0; i < edges_.size(); ++i)
    words += (i == 0 ? "" : ", ") + std::to_string(edges_[i]);
  return words;
}

namespace detail {

PENSTOCK_INLINE bucket_table::bucket_table(const std::vector<std::uint64_t>& edges) : starts_{0} {
  for (const std::uint64_t edge : edges) starts_.push_back(edge + 1);
}

PENSTOCK_INLINE std::vector<std::uint64_t> bucket_table::edges() const {
  std::vector<std::uint64_t> upper;
  for (std::size_t i = 1; i < starts_.size(); ++i) upper.push_back(starts_[i] - 1);
  return upper;
}

PENSTOCK_INLINE std::uint64_t length_sums::longest_of(std::size_t cell) noexcept {
  const std::size_t shift = cell < std::size_t{2} << bits ? 0 : (cell >> bits) - 1;
  const std::uint64_t high = cell - (shift << bits);
  return ((high + 1) << shift) - 1;
}

PENSTOCK_INLINE std::vector<std::uint64_t> length_sums::edges(std::uint64_t buckets) const {
  std::vector<std::uint64_t> found;
  const double total = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  double sum = 0, at_edge = 0;  // a cell may be more than a bucket's share; then the others divide the rest
  for (std::size_t cell = 0; cell < sums_.size(); ++cell) {
    if (sums_[cell] == 0) continue;
    sum += sums_[cell];
    if (found.size() + 1 == buckets || sum >= total) break;
    if ((sum - at_edge) * static_cast<double>(buckets - found.size()) < total - at_edge) continue;
    found.push_back(longest_of(cell));
    at_edge = sum;
  }
  return found;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
