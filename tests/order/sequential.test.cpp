// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/sequential.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

static_assert(ps::order_stage<ps::sequential_stage>, "sequential is an order stage");

TEST_CASE("order/sequential: does not change positions, size and shard boundaries") {
  const auto starts =
      std::make_shared<const std::vector<std::uint64_t>>(std::vector<std::uint64_t>{0, 4, 10});
  const auto made = ps::sequential.make({10, starts});
  CHECK(made.size() == 10);
  CHECK(made.output().starts == starts);
  CHECK(made.bind(3)(7) == ps::position{3, 7});
  CHECK(made.position_of({3, 7}) == ps::position{3, 7});
  CHECK_FALSE(made.position_of({3, 10}).has_value());
  CHECK(ps::sequential.describe() == "sequential");
}
