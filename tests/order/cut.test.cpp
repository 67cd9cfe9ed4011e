// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/cut.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

namespace {

using indices = std::vector<std::uint64_t>;

/// The positions of a step in the order in which ranks take them, computed the slow way.
indices sorted_by_lane(const ps::cut& c, std::uint64_t step) {
  indices all(static_cast<std::size_t>(std::min(c.global, c.size - step * c.global)));
  std::iota(all.begin(), all.end(), step * c.global);
  std::stable_sort(all.begin(), all.end(),
                   [&](std::uint64_t a, std::uint64_t b) { return a % c.lanes < b % c.lanes; });
  return all;
}

std::string spell(const ps::cut& c) {
  std::ostringstream out;
  out << "size " << c.size << ", global " << c.global << ", world " << c.world << ", lanes " << c.lanes
      << ", tail " << ps::to_string(c.policy);
  return out.str();
}

/// Empty if the cut gives every rank the right positions; otherwise what is wrong.
std::string fault(ps::cut c) {
  c.check();
  std::uint64_t delivered = 0;
  for (std::uint64_t step = 0; step < c.steps(); ++step) {
    const indices expected = sorted_by_lane(c, step);
    const bool partial = expected.size() < c.global;
    const std::uint64_t divided = partial && c.policy == ps::tail::keep ? expected.size() : c.global;
    std::uint64_t ordinal = 0;
    for (c.rank = 0; c.rank < c.world; ++c.rank) {
      const std::uint64_t begin = divided * c.rank / c.world, end = divided * (c.rank + 1) / c.world;
      const auto view = c.at(step);
      const std::string where =
          " at step " + std::to_string(step) + ", rank " + std::to_string(c.rank) + ", " + spell(c);
      if (c.slots(step) != end - begin || view.slots() != end - begin) return "slots" + where;
      const std::uint64_t there =
          std::min<std::uint64_t>(end, expected.size()) - std::min<std::uint64_t>(begin, expected.size());
      if (c.valid(step) != there || view.valid() != there) return "valid" + where;
      for (std::uint64_t slot = 0; slot < there; ++slot, ++ordinal) {
        const std::uint64_t index = expected[static_cast<std::size_t>(ordinal)];
        if (view[slot] != index || c.index_of(step, slot) != index) return "index" + where;
        if (c.slot_of(index) != ps::cut_place{step, c.rank, slot}) return "inverse" + where;
      }
      for (std::uint64_t slot = there; slot < end - begin + 1; ++slot) {
        if (c.index_of(step, slot).has_value()) return "padding" + where;
      }
    }
    if (ordinal != expected.size()) return "incomplete step " + std::to_string(step) + ", " + spell(c);
    delivered += ordinal;
  }
  if (delivered != (c.policy == ps::tail::drop ? c.size / c.global * c.global : c.size))
    return "incomplete epoch, " + spell(c);
  for (std::uint64_t index = delivered; index < c.size + 2; ++index) {
    if (c.slot_of(index).has_value()) return "place of an index that is not delivered, " + spell(c);
  }
  return "";
}

}  // namespace

TEST_CASE("order/cut: equal batches if the global step divides evenly") {
  const ps::cut mine{.size = 100, .global = 32, .world = 4, .rank = 1, .policy = ps::tail::drop};
  CHECK(mine.steps() == 3);
  CHECK(mine.slots(2) == 8);
  CHECK(mine.at(2)[0] == 72);
  CHECK(mine.index_of(2, 7) == 79);
  CHECK_FALSE(mine.index_of(2, 8).has_value());
  CHECK_FALSE(mine.index_of(3, 0).has_value());
}

TEST_CASE("order/cut: the three tails") {
  ps::cut mine{.size = 10, .global = 8, .world = 4, .rank = 0};
  mine.policy = ps::tail::drop;
  CHECK(mine.steps() == 1);
  CHECK_FALSE(mine.slot_of(9).has_value());
  mine.policy = ps::tail::pad;
  CHECK(mine.steps() == 2);
  CHECK(mine.slots(1) == 2);
  CHECK(mine.valid(1) == 2);
  mine.rank = 1;
  CHECK(mine.slots(1) == 2);
  CHECK(mine.valid(1) == 0);
  mine.policy = ps::tail::keep;
  CHECK(mine.slots(1) == 1);
  CHECK(mine.index_of(1, 0) == 8);
  mine.rank = 0;
  CHECK(mine.slots(1) == 0);
}

TEST_CASE("order/cut: lanes sort a step so that a rank's part lies in neighbouring lanes") {
  const ps::cut mine{.size = 16, .global = 8, .world = 2, .rank = 0, .lanes = 4};
  const auto step = mine.at(1);
  CHECK(indices{step[0], step[1], step[2], step[3]} == indices{8, 12, 9, 13});
}

TEST_CASE("order/cut: nothing to divide") {
  for (const ps::tail policy : {ps::tail::drop, ps::tail::pad, ps::tail::keep}) {
    const ps::cut none{.size = 0, .global = 8, .world = 2, .rank = 1, .policy = policy};
    CHECK(none.steps() == 0);
    CHECK(none.slots(0) == 0);
    CHECK_FALSE(none.slot_of(0).has_value());
  }
}

TEST_CASE(
    "order/cut: ranks are disjoint and complete, with a right inverse, for any size, step, world, lanes, "
    "tail") {
  ps::rng random(5, 0, 0);
  const int rounds = std::getenv("PENSTOCK_LONG_TESTS") != nullptr ? 200'000 : 4000;
  for (int round = 0; round < rounds; ++round) {
    ps::cut c;
    c.size = random.below(400);
    c.global = 1 + random.below(random.chance(0.5) ? 20 : 150);
    c.world = 1 + random.below(random.chance(0.3) ? 64 : 9);
    c.lanes = random.chance(0.3) ? 1 : 1 + random.below(random.chance(0.5) ? 8 : 90);
    c.policy = static_cast<ps::tail>(random.below(3));
    const std::string wrong = fault(c);
    if (!wrong.empty()) FAIL(wrong);
  }
  SUCCEED("no fault");
}

TEST_CASE("order/cut: a global step's sequence does not depend on the number of ranks") {
  for (const std::uint64_t lanes : {1u, 8u, 24u}) {
    const auto sequence = [&](std::uint64_t world) {
      indices all;
      ps::cut c{
          .size = 1000, .global = 96, .world = world, .rank = 0, .lanes = lanes, .policy = ps::tail::keep};
      for (std::uint64_t step = 0; step < c.steps(); ++step) {
        for (c.rank = 0; c.rank < world; ++c.rank) {
          const auto view = c.at(step);
          for (std::uint64_t slot = 0; slot < view.valid(); ++slot) all.push_back(view[slot]);
        }
      }
      return all;
    };
    const indices one = sequence(1);
    CHECK(one.size() == 1000);
    for (std::uint64_t world = 2; world <= 64; ++world) CHECK(sequence(world) == one);
  }
}

TEST_CASE("order/cut: the largest epoch does not overflow") {
  const std::uint64_t size = std::uint64_t{1} << 63;
  const ps::cut mine{
      .size = size, .global = 4'000'000'000, .world = 3'000'000'000, .rank = 2'999'999'999, .lanes = 64};
  mine.check();
  const std::uint64_t last = mine.steps() - 2;
  REQUIRE(mine.valid(last) > 0);
  const std::uint64_t index = mine.at(last)[mine.valid(last) - 1];
  CHECK(index < size);
  CHECK(mine.slot_of(index) == ps::cut_place{last, mine.rank, mine.valid(last) - 1});
}

TEST_CASE("order/cut: impossible cuts are refused with a reason") {
  CHECK_THROWS_WITH((ps::cut{.size = 1, .global = 0}.check()), penstock_test::contains("global step"));
  CHECK_THROWS_WITH((ps::cut{.size = 1, .world = 0}.check()), penstock_test::contains("world"));
  CHECK_THROWS_WITH((ps::cut{.size = 1, .world = 4, .rank = 4}.check()), penstock_test::contains("rank 4"));
  CHECK_THROWS_WITH((ps::cut{.size = 1, .lanes = 0}.check()), penstock_test::contains("lanes"));
  CHECK_THROWS_WITH((ps::cut{.size = ~std::uint64_t{0}}.check()), penstock_test::contains("2^63"));
}
