// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/tail.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("order/tail: each policy prints the name that users write") {
  CHECK(ps::to_string(ps::tail::drop) == "drop");
  CHECK(ps::to_string(ps::tail::pad) == "pad");
  CHECK(ps::to_string(ps::tail::keep) == "keep");
}
