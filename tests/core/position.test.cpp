// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/position.hpp>

#include "support/catch.hpp"

#include <type_traits>
#include <vector>

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

TEST_CASE("core/position: positions that lie one behind the other are recognised") {
  const auto seem = [](std::vector<std::uint64_t> indexes) {
    std::vector<ps::position> next;
    for (const std::uint64_t index : indexes) next.push_back({0, index});
    return ps::detail::seem_consecutive(next);
  };
  CHECK(seem({7, 8}));
  CHECK(seem({0, 1, 2, 3}));
  CHECK_FALSE(seem({}));
  CHECK_FALSE(seem({7}));
  CHECK_FALSE(seem({8, 7}));
  CHECK_FALSE(seem({0, 1, 2, 4}));
  CHECK_FALSE(seem({0, 2, 3, 3}));
}
