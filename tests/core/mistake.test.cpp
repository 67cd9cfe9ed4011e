// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/mistake.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

// Each sentence has a program in tests/compile_fail that must fail with it.

TEST_CASE("core/mistake: where nothing is wrong nothing is said") {
  constexpr bool said = [] {
    ps::explain<ps::mistake::none>();
    return true;
  }();
  CHECK(said);
}
