// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/bucket_edges.hpp>

#include <penstock/core/random.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace bucket_edges_test {

namespace ps = penstock;

namespace {

using numbers = std::vector<std::uint64_t>;

numbers edges_of(const numbers& lengths, const ps::bucket_edges& wanted) {
  ps::detail::length_counts counts;
  for (const std::uint64_t length : lengths) counts.add(length);
  return counts.edges(wanted);
}

/// The slots of all lengths if each is padded to its bucket's longest.
std::uint64_t slots_of(const numbers& lengths, const numbers& edges) {
  const ps::detail::bucket_table table(edges);
  numbers count(table.buckets()), longest(table.buckets());
  for (const std::uint64_t length : lengths) {
    ++count[table.bucket(length)];
    longest[table.bucket(length)] = std::max(longest[table.bucket(length)], length);
  }
  std::uint64_t slots = 0;
  for (std::size_t k = 0; k < count.size(); ++k) slots += count[k] * longest[k];
  return slots;
}

/// The fewest slots in so many buckets, by trying all edges.
std::uint64_t fewest_slots(const numbers& lengths, std::uint64_t buckets, numbers edges = {}) {
  std::uint64_t least = slots_of(lengths, edges);
  if (edges.size() + 1 == buckets) return least;
  for (std::uint64_t edge = edges.empty() ? 0 : edges.back() + 1; edge < 13; ++edge) {
    numbers more = edges;
    more.push_back(edge);
    least = std::min(least, fewest_slots(lengths, buckets, more));
  }
  return least;
}

}  // namespace

TEST_CASE("order/bucket_edges: a length belongs to the first bucket whose edge is not below it") {
  const numbers edges{4, 9, 20};
  const ps::detail::bucket_table table(edges);
  CHECK(table.buckets() == 4);
  CHECK(table.edges() == edges);
  for (std::uint64_t n = 0; n < 30; ++n)
    CHECK(table.bucket(n) == std::lower_bound(edges.begin(), edges.end(), n) - edges.begin());
  CHECK(table.bucket(~std::uint64_t{0}) == 3);
  CHECK(ps::detail::bucket_table({}).bucket(77) == 0);
  const numbers wide{100, 16'382, 16'383, 16'384, 20'000, 1'000'000};
  const ps::detail::bucket_table of_wide(wide);
  for (const std::uint64_t n :
       {0u, 100u, 101u, 16'382u, 16'383u, 16'384u, 16'385u, 20'001u, 1'000'000u, 1'000'001u})
    CHECK(of_wide.bucket(n) == std::lower_bound(wide.begin(), wide.end(), n) - wide.begin());
  numbers most(254);
  std::iota(most.begin(), most.end(), 0u);
  CHECK(ps::detail::bucket_table(most).buckets() == 255);
  CHECK(ps::detail::bucket_table(most).bucket(254) == 254);
  CHECK(ps::bucket_edges(most).edges().size() == 254);
  CHECK(ps::bucket_edges{5}.describe() == "edge 5");
  CHECK(ps::bucket_edges(5).describe() == "5 buckets");
  CHECK(ps::bucket_edges(1).describe() == "1 bucket");
  CHECK(ps::least_padding(5).describe() == "5 buckets of least padding");
}

TEST_CASE("order/bucket_edges: buckets have sums as equal as lengths allow") {
  ps::rng random(1, 0, 0);
  for (const std::uint64_t longest : {100u, 5'000u, 1'000'000u}) {
    numbers lengths;
    for (int i = 0; i < 20'000; ++i)
      lengths.push_back(random.below(longest) * random.below(longest) / longest + 1);
    const double all = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}));
    for (const std::uint64_t buckets : {1u, 2u, 7u, 30u}) {
      const ps::detail::bucket_table table(edges_of(lengths, ps::bucket_edges(buckets)));
      REQUIRE(table.buckets() == buckets);
      std::vector<double> sums(buckets);
      for (const std::uint64_t length : lengths) sums[table.bucket(length)] += static_cast<double>(length);
      const double share = all / static_cast<double>(buckets);
      // up to the samples of one length, 1/100 of the longest
      for (const double sum : sums)
        CHECK(std::abs(sum - share) < share * 0.05 + all * 0.021 * (longest == 100));
    }
  }
}

TEST_CASE("order/bucket_edges: few different lengths make few buckets") {
  CHECK(edges_of({}, 9).empty());
  CHECK(edges_of(numbers(50, 0), 9).empty());
  CHECK(edges_of(numbers(50, 8), 9).empty());
  CHECK(edges_of(numbers(50, 8), ps::least_padding(9)).empty());
  CHECK(edges_of({}, ps::least_padding(9)).empty());
  CHECK(edges_of({3, 3, 5, 5, 5}, 9) == numbers{3});
  CHECK(edges_of({3, 3, 5, 5, 5}, ps::least_padding(9)) == numbers{3});
  CHECK(edges_of({0, 0, 1}, ps::least_padding(2)) == numbers{0});
  // half of all tokens in one length: the others divide the rest
  numbers lengths(1000, 10);
  for (std::uint64_t n = 11; n < 111; ++n) lengths.push_back(n);
  CHECK(edges_of(lengths, 5).front() == 10);
  CHECK(edges_of(lengths, 5).size() == 4);
  const std::uint64_t most = ~std::uint64_t{0} >> 1;
  CHECK(edges_of({5, most, most - 1}, ps::least_padding(4)).front() == 5);
}

TEST_CASE("order/bucket_edges: edges of least padding have the least of all") {
  ps::rng random(2, 0, 0);
  for (int i = 0; i < 60; ++i) {
    numbers lengths;
    for (std::uint64_t n = random.below(60); n != 0; --n)
      lengths.push_back(random.below(1 + random.below(13)));
    for (std::uint64_t buckets = 1; buckets < 5; ++buckets) {
      const numbers edges = edges_of(lengths, ps::least_padding(buckets));
      CHECK(edges.size() < buckets);
      CHECK(std::is_sorted(edges.begin(), edges.end()));
      CHECK(slots_of(lengths, edges) == fewest_slots(lengths, buckets));
    }
  }
  numbers lengths;
  for (int i = 0; i < 50'000; ++i) lengths.push_back(random.below(100'000));
  for (const std::uint64_t buckets : {10u, 255u}) {
    const std::uint64_t least = slots_of(lengths, edges_of(lengths, ps::least_padding(buckets)));
    CHECK(least < slots_of(lengths, edges_of(lengths, buckets)));
    numbers even;  // of a uniform distribution, edges at equal distances are the best
    for (std::uint64_t k = 1; k < buckets; ++k) even.push_back(100'000 * k / buckets);
    CHECK(static_cast<double>(least) < 1.002 * static_cast<double>(slots_of(lengths, even)));
  }
}

}  // namespace bucket_edges_test
