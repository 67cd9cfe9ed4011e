// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/order/equal_work.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

namespace equal_work_test {

namespace ps = penstock;

namespace {

using costs = std::vector<std::uint64_t>;

struct dealt {
  std::string fault;       // empty if every row is dealt once, and equally many to each
  std::uint64_t most = 0;  // work of the rank that has the most
};

dealt deal(ps::equal_work& work, const costs& of, std::size_t ranks) {
  work.deal(of, ranks);
  dealt found;
  std::vector<int> seen(of.size(), 0);
  if (work.ranks() != ranks) found.fault = "ranks";
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto rows = work.rows(rank);
    if (rows.size() != of.size() / ranks + (rank < of.size() % ranks ? 1 : 0)) found.fault = "rows of a rank";
    if (!std::is_sorted(rows.begin(), rows.end())) found.fault = "not ascending";
    std::uint64_t sum = 0;
    for (const std::uint32_t row : rows) {
      ++seen.at(row);
      sum += of[row];
    }
    found.most = std::max(found.most, sum);
  }
  if (!std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; })) found.fault = "lost or twice";
  return found;
}

std::uint64_t most_in_order(const costs& of, std::size_t ranks) {
  std::uint64_t most = 0;
  std::size_t row = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::uint64_t sum = 0;
    for (std::size_t n = of.size() / ranks + (rank < of.size() % ranks ? 1 : 0); n != 0; --n)
      sum += of[row++];
    most = std::max(most, sum);
  }
  return most;
}

/// The least that the largest work can be, by trying everything.
std::uint64_t least_possible(const costs& of, std::size_t ranks) {
  std::vector<std::uint64_t> sums(ranks, 0);
  std::vector<std::size_t> left(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    left[rank] = of.size() / ranks + (rank < of.size() % ranks ? 1 : 0);
  std::uint64_t best = ~std::uint64_t{0};
  const auto put = [&](const auto& self, std::size_t row, std::uint64_t most) -> void {
    if (most >= best) return;
    if (row == of.size()) {
      best = most;
      return;
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (left[rank] == 0) continue;
      --left[rank];
      sums[rank] += of[row];
      self(self, row + 1, std::max(most, sums[rank]));
      sums[rank] -= of[row];
      ++left[rank];
    }
  };
  put(put, 0, 0);
  return best;
}

costs made_costs(ps::rng& random, std::size_t n) {
  const std::uint64_t kind = random.below(5);
  costs made;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t cost = random.below(1000);
    if (kind == 1) cost = 7;
    if (kind == 2) cost = random.below(20) == 0 ? 100'000 : random.below(10);
    if (kind == 3) cost = cost * cost * cost;
    if (kind == 4) cost = i;
    made.push_back(cost);
  }
  return made;
}

}  // namespace

TEST_CASE(
    "order/equal_work: every row is dealt once, equally many to each rank, and never worse than in order") {
  ps::rng random(1, 0, 0);
  ps::equal_work work;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t ranks = ps::detail::to_size(1 + random.below(round % 50 == 0 ? 300 : 12));
    const costs of = made_costs(random, ps::detail::to_size(random.below(round % 50 == 0 ? 2000 : 80)));
    const dealt found = deal(work, of, ranks);
    INFO(of.size() << " rows to " << ranks << " ranks");
    REQUIRE(found.fault.empty());
    REQUIRE(found.most <= most_in_order(of, ranks));
  }
}

TEST_CASE("order/equal_work: near the best that there is") {
  ps::rng random(2, 0, 0);
  ps::equal_work work;
  std::uint64_t ours = 0, best = 0;
  for (int round = 0; round < 400; ++round) {
    const std::size_t ranks = ps::detail::to_size(2 + random.below(3));
    costs of;
    for (std::uint64_t i = ranks + random.below(11 - ranks); i != 0; --i)
      of.push_back(1 + random.below(1000));
    const std::uint64_t most = deal(work, of, ranks).most, least = least_possible(of, ranks);
    REQUIRE(most >= least);
    CHECK(most * 100 <= least * 125);
    ours += most;
    best += least;
  }
  CHECK(ours * 1000 <= best * 1015);
}

TEST_CASE("order/equal_work: the same deal everywhere") {
  ps::equal_work work;
  const auto rows = [&](std::size_t rank) {
    const auto of = work.rows(rank);
    return std::vector<std::uint32_t>(of.begin(), of.end());
  };
  using numbers = std::vector<std::uint32_t>;
  work.deal(costs{9, 1, 8, 2, 7, 3}, 3);
  CHECK(rows(0) == numbers{0, 1});
  CHECK(rows(1) == numbers{2, 3});
  CHECK(rows(2) == numbers{4, 5});
  // Equal costs: to the ranks in turn. One more for the first ranks.
  work.deal(costs{5, 5, 5, 5, 5}, 2);
  CHECK(rows(0) == numbers{0, 2, 4});
  CHECK(rows(1) == numbers{1, 3});
  // Fewer rows than ranks.
  work.deal(costs{1, 4}, 4);
  CHECK(rows(0) == numbers{1});
  CHECK(rows(1) == numbers{0});
  CHECK(rows(2).empty());
  CHECK(rows(3).empty());
  // The longest first alone gives 8 + 5 + 5 and 7 + 6 + 1; an exchange makes it 16 and 16.
  work.deal(costs{8, 7, 6, 5, 5, 1}, 2);
  CHECK(rows(0) == numbers{2, 3, 4});
  CHECK(rows(1) == numbers{0, 1, 5});

  std::uint64_t hash = 0;
  ps::rng random(3, 0, 0);
  for (int round = 0; round < 100; ++round) {
    const costs of = made_costs(random, ps::detail::to_size(random.below(300)));
    work.deal(of, ps::detail::to_size(1 + random.below(16)));
    for (std::size_t rank = 0; rank < work.ranks(); ++rank)
      for (const std::uint32_t row : work.rows(rank)) hash = ps::mix64(hash ^ (row + 1));
  }
  CHECK(hash == 0xd82d9c28582e460du);
}

TEST_CASE("order/equal_work: costs beyond 63 bits are rounded, and still dealt") {
  ps::equal_work work;
  const std::uint64_t top = ~std::uint64_t{0};
  work.deal(costs{top, top, top / 2, top / 2, 1, 2, 3, 4}, 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto rows = work.rows(rank);
    REQUIRE(rows.size() == 4);
    CHECK(std::count_if(rows.begin(), rows.end(), [](std::uint32_t row) { return row < 2; }) == 1);
    CHECK(std::count_if(rows.begin(), rows.end(), [](std::uint32_t row) { return row == 2 || row == 3; }) ==
          1);
  }
  CHECK_THROWS_WITH(work.deal(costs{1}, 0), Catch::Contains("rows are dealt to 0 ranks; give at least 1"));
}

TEST_CASE("order/equal_work: used again it allocates nothing") {
  ps::rng random(4, 0, 0);
  ps::equal_work work;
  const costs large = made_costs(random, 512), small = made_costs(random, 100);
  work.deal(large, 8);
  const std::uint64_t before = penstock_test::allocations;
  work.deal(small, 8);
  work.deal(large, 8);
  CHECK(penstock_test::allocations == before);
}

TEST_CASE("order/equal_work: the work of documents") {
  static_assert(ps::work_weights{2, 3}.of(10) == 320);
  static_assert(ps::work_weights{0, 1}.of(0xffffffffu) == 0xfffffffe00000001u);
  static_assert(ps::work_weights{0, 2}.of(0xffffffffu) == ~std::uint64_t{0});
  static_assert(ps::work_weights{~std::uint64_t{0}, 0}.of(0) == 0);
  static_assert(ps::work_weights::plus(~std::uint64_t{0}, 5) == ~std::uint64_t{0});
  // A row of one document has more work than a row of two with as many tokens.
  const ps::work_weights w;
  CHECK(w.of(4096) > ps::work_weights::plus(w.of(2048), w.of(2048)));
}

}  // namespace equal_work_test
