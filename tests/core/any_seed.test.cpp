// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/any_seed.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>

namespace ps = penstock;

static_assert(ps::any_seed(ps::seed(7)).value() == 7);
static_assert(ps::seed(7u).value == 7);
static_assert(ps::seed(std::int8_t{7}).value == 7);
static_assert(ps::seed(std::uint64_t{1} << 63).value == std::uint64_t{1} << 63);
static_assert(ps::shuffle(ps::seed(std::int16_t{5})).seed == 5);
static_assert(ps::seed(5).value == 5);

TEST_CASE("core/any_seed: any integer is a seed, and a negative one has its own bits") {
  CHECK(ps::seed(-1).value == std::numeric_limits<std::uint64_t>::max());
  CHECK(ps::shuffle(ps::seed(-1)).seed != ps::shuffle(ps::seed(1)).seed);
  CHECK(ps::shuffle_buffer(4, ps::seed(-2)).seed == std::numeric_limits<std::uint64_t>::max() - 1);
}
