// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/selection.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace selection_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/selection: skip and take act as on lists, in any order") {
  for (const std::uint64_t skip : {0u, 1u, 5u, 50u})
    for (const std::uint64_t take : {0u, 1u, 7u, 50u})
      for (const bool skip_first : {true, false}) {
        ps::selection chosen;
        std::vector<int> list = first_ints(30);
        const auto cut = [&list](std::uint64_t from_here, std::uint64_t count) {
          const auto begin = std::min<std::size_t>(from_here, list.size());
          list = std::vector<int>(
              list.begin() + static_cast<std::ptrdiff_t>(begin),
              list.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(begin + count, list.size())));
        };
        if (skip_first) {
          chosen.keep({.first = skip});
          chosen.keep({.end = take});
          cut(skip, 1000);
          cut(0, take);
        } else {
          chosen.keep({.end = take});
          chosen.keep({.first = skip});
          cut(0, take);
          cut(skip, 1000);
        }
        std::vector<int> seen;
        for (int i = 0; i < 30; ++i) {
          const auto verdict = chosen.look(static_cast<std::uint64_t>(i));
          if (verdict == ps::selection::verdict::end) break;
          if (verdict == ps::selection::verdict::pass) seen.push_back(i);
        }
        REQUIRE(seen == list);
        REQUIRE(chosen.passing(30) == list.size());
        for (std::uint64_t wanted = 1; wanted <= chosen.passing(30); ++wanted) {
          const std::uint64_t needed = chosen.reaching(wanted);
          REQUIRE(chosen.passing(needed) == wanted);
          REQUIRE(chosen.passing(needed - 1) == wanted - 1);
        }
      }
}

TEST_CASE("run/selection: ranks are dealt in turn") {
  ps::selection mine;
  CHECK(mine.trivial());
  mine.deal(1, 3);
  CHECK_FALSE(mine.trivial());
  CHECK(mine.ours(1));
  CHECK(mine.ours(4));
  CHECK_FALSE(mine.ours(3));
}

TEST_CASE("run/selection: for one stage a mark is its place") {
  ps::selection third;
  third.deal(1, 3);
  for (const ps::selection& one :
       {ps::selection({.first = 5}), ps::selection({.end = 7}), third, ps::selection()})
    for (std::uint64_t number = 0; number < 20; ++number) {
      const std::uint64_t again = one.number_at(one.mark_at(number));
      REQUIRE(one.look(again) == one.look(number));
      REQUIRE(one.ours(again) == one.ours(number));
      REQUIRE(one.mark_at(again) == one.mark_at(number));
    }
  CHECK(ps::selection({.first = 5}).mark_at(2) == 3);
  CHECK(ps::selection({.end = 5}).mark_at(2) == 2);
  CHECK(third.mark_at(0) == 1);
}

}  // namespace selection_test
