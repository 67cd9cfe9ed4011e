// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/guarantee.hpp>

#include "support/catch.hpp"

#include <string>

namespace ps = penstock;

namespace guarantee_test {

using g = ps::guarantee;

static_assert(ps::guarantee_set().bits == 0 && !ps::guarantee_set().has(g::indexed),
              "an empty set has nothing");
static_assert(ps::guarantee_set(g::indexed, g::elastic).has(g::elastic), "a set has what was put in");
static_assert(!ps::guarantee_set(g::indexed, g::elastic).has(g::lockstep), "a set has nothing else");
static_assert(ps::guarantee_set(g::indexed).with(ps::guarantee_set(g::lockstep)).bits == 17,
              "with is the union");
static_assert(
    ps::guarantee_set(g::indexed, g::elastic).without(ps::guarantee_set(g::elastic, g::resumable)).bits == 1,
    "without is the difference");

}  // namespace guarantee_test

TEST_CASE("core/guarantee: the five have names") {
  std::string names;
  for (const auto one : ps::all_guarantees) names += std::string(ps::to_string(one)) + " ";
  CHECK(names == "indexed deterministic resumable elastic lockstep ");
}
