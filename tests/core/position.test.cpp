// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/position.hpp>

#include "support/catch.hpp"

#include <type_traits>

namespace ps = penstock;

static_assert(std::is_trivially_copyable_v<ps::position> && sizeof(ps::position) == 16,
              "a position is two numbers");
static_assert(ps::position{} == ps::position{0, 0}, "a default position is the beginning");

TEST_CASE("core/position: the epoch counts before the index, the part last") {
  CHECK(ps::position{0, 9} < ps::position{1, 0});
  CHECK(ps::position{1, 1} > ps::position{1, 0});
  CHECK(ps::origin{{1, 1}, 0} < ps::origin{{1, 1}, 1});
  CHECK(ps::origin{{1, 1}, 5} < ps::origin{{1, 2}, 0});
  CHECK(ps::origin{{1, 1}, 5} == ps::origin{{1, 1}, 5});
}
