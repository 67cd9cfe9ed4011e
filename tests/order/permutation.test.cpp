// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/permutation.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "support/catch.hpp"
#include "support/test_data.hpp"

namespace ps = penstock;
using penstock_test::long_tests;

namespace {

static_assert(sizeof(ps::permutation) == 128, "a permutation is two cache lines");
static_assert(std::is_trivially_copyable_v<ps::permutation>, "a permutation may be copied as bytes");

constexpr bool whole_at_compile_time(std::uint64_t n) {
  const ps::permutation shuffled(n, 7);
  for (std::uint64_t i = 0; i < n; ++i) {
    if (shuffled(i) >= n || shuffled.inverse(shuffled(i)) != i) return false;
  }
  return true;
}
static_assert(whole_at_compile_time(5) && whole_at_compile_time(200),
              "a permutation can be computed by the compiler");

/// Empty if the permutation is a bijection with the right inverse; otherwise what is wrong.
std::string fault(std::uint64_t n, std::uint64_t key) {
  const ps::permutation shuffled(n, key);
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t j = shuffled(i);
    const std::string where =
        " at n " + std::to_string(n) + ", key " + std::to_string(key) + ", index " + std::to_string(i);
    if (j >= n) return "outside" + where;
    if (seen[static_cast<std::size_t>(j)]) return "twice" + where;
    seen[static_cast<std::size_t>(j)] = true;
    if (shuffled.inverse(j) != i) return "wrong inverse" + where;
  }
  return "";
}

/// The chi-square statistic, as its distance from the mean in standard deviations.
double deviation(const std::vector<std::uint64_t>& counts) {
  const double total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const std::uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

/// The rank of a permutation of a few elements, below n!.
std::uint64_t rank_of(const ps::permutation& shuffled) {
  std::uint64_t rank = 0;
  for (std::uint64_t i = 0; i < shuffled.size(); ++i) {
    std::uint64_t smaller = 0;
    for (std::uint64_t j = i + 1; j < shuffled.size(); ++j) smaller += shuffled(j) < shuffled(i) ? 1 : 0;
    rank = rank * (shuffled.size() - i) + smaller;
  }
  return rank;
}

}  // namespace

TEST_CASE(
    "order/permutation: every index once, and the inverse, at all sizes up to 1100 and around powers of "
    "two") {
  const std::uint64_t keys = long_tests() ? 20 : 3;
  std::vector<std::uint64_t> sizes(1100);
  std::iota(sizes.begin(), sizes.end(), std::uint64_t{0});
  for (unsigned bits = 11; bits <= (long_tests() ? 20u : 15u); ++bits) {
    for (std::uint64_t n = (std::uint64_t{1} << bits) - 2; n <= (std::uint64_t{1} << bits) + 2; ++n)
      sizes.push_back(n);
  }
  for (const std::uint64_t n : sizes) {
    for (std::uint64_t key = 0; key < keys; ++key) {
      const std::string wrong = fault(n, key * 0x123456789u);
      if (!wrong.empty()) FAIL(wrong);
    }
  }
  SUCCEED("no fault");
}

TEST_CASE("order/permutation: the largest sizes stay in range and have an inverse") {
  for (const std::uint64_t n : {std::uint64_t{1} << 40, (std::uint64_t{1} << 62) + 1,
                                (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63}) {
    const ps::permutation shuffled(n, 11);
    ps::rng random(1, 0, n);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t x = random.below(n);
      const std::uint64_t y = shuffled(x);
      if (y >= n || shuffled.inverse(y) != x) FAIL("wrong at n " << n << ", index " << x);
    }
  }
  CHECK_THROWS_WITH(ps::permutation((std::uint64_t{1} << 63) + 1, 0),
                    penstock_test::contains("at most 2^63"));
}

TEST_CASE("order/permutation: an empty one and one of a single index") {
  CHECK(ps::permutation().size() == 0);
  CHECK(ps::permutation(0, 5).size() == 0);
  CHECK(ps::permutation(1, 5)(0) == 0);
  CHECK(ps::permutation(1, 5).inverse(0) == 0);
}

TEST_CASE("order/permutation: the sequence is part of the format and does not change") {
  const auto first = [](std::uint64_t n) {
    const ps::permutation shuffled(n, 42);
    return std::array<std::uint64_t, 4>{shuffled(0), shuffled(1), shuffled(2), shuffled(n - 1)};
  };
  CHECK(first(10) == std::array<std::uint64_t, 4>{3, 0, 1, 6});
  CHECK(first(500) == std::array<std::uint64_t, 4>{163, 228, 215, 397});
  CHECK(first(1'000'000) == std::array<std::uint64_t, 4>{85738, 327314, 161158, 287417});
  CHECK(first(std::uint64_t{1} << 40) ==
        std::array<std::uint64_t, 4>{786634821187, 448410852982, 248686813066, 896807875065});
}

TEST_CASE("order/permutation: on a few indices every permutation is equally frequent over the keys") {
  for (const auto& [n, permutations] :
       {std::pair<std::uint64_t, std::uint64_t>{3, 6}, {4, 24}, {5, 120}, {6, 720}}) {
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(permutations));
    for (std::uint64_t key = 0; key < permutations * 500; ++key) {
      ++counts[static_cast<std::size_t>(rank_of(ps::permutation(n, key)))];
    }
    INFO("n " << n);
    CHECK(*std::min_element(counts.begin(), counts.end()) > 0);
    CHECK(std::abs(deviation(counts)) < 5);
  }
}

TEST_CASE(
    "order/permutation: over the keys, two indices go everywhere equally often, for 7 to 1000 indices") {
  for (const std::uint64_t n : {7u, 12u, 20u, 121u, 128u, 300u, 899u, 900u, 1000u}) {
    const std::uint64_t trials = long_tests() ? 3'000'000 : 150'000;
    // the low digit's range: the weakest distance
    const std::uint64_t step = std::uint64_t{1} << (std::bit_width(n - 1) / 2);
    for (const std::uint64_t apart : {std::uint64_t{1}, step, n / 2}) {
      std::vector<std::uint64_t> place(static_cast<std::size_t>(n)),
          difference(static_cast<std::size_t>(n - 1));
      for (std::uint64_t key = 0; key < trials; ++key) {
        const ps::permutation shuffled(n, ps::mix64(key));
        const std::uint64_t i = key % (n - apart), a = shuffled(i), b = shuffled(i + apart);
        ++place[static_cast<std::size_t>(a)];
        ++difference[static_cast<std::size_t>((b + n - a) % n - 1)];
      }
      INFO("n " << n << ", " << apart << " apart");
      CHECK(std::abs(deviation(place)) < 6);
      // At 128, which the digits cover exactly, one of 127 distances is 6 % off: only the long run notices
      // it.
      CHECK(std::abs(deviation(difference)) < (long_tests() ? 12 : 6));
    }
  }
}

TEST_CASE("order/permutation: within one key, an index says nothing about where its neighbour goes") {
  constexpr std::uint64_t parts = 16;
  for (const std::uint64_t n : {20'000u, 65'536u, 100'003u}) {
    for (std::uint64_t key = 0; key < (long_tests() ? 1000u : 40u); ++key) {
      const ps::permutation shuffled(n, key);
      const std::uint64_t step = std::uint64_t{1} << (std::bit_width(n - 1) / 2);
      for (const std::uint64_t apart : {std::uint64_t{1}, step}) {
        std::vector<std::uint64_t> pairs(parts * parts);
        for (std::uint64_t i = 0; i + apart < n; ++i) {
          ++pairs[static_cast<std::size_t>(shuffled(i) * parts / n * parts +
                                           shuffled(i + apart) * parts / n)];
        }
        INFO("n " << n << ", key " << key << ", " << apart << " apart");
        CHECK(deviation(pairs) < 7);
      }
    }
  }
}
