// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/weights.hpp>

#include <cstdint>
#include <vector>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("order/weights: written as lists or taken from vectors") {
  const std::vector<double> two{0.25, 0.75};
  CHECK(ps::weights{0.25, 0.75}.values() == two);
  CHECK(ps::weights(two).values() == two);
  CHECK(ps::proportions(two).values() == ps::proportions{0.25, 0.75}.values());
  CHECK(ps::repeats(two).values() == ps::repeats{0.25, 0.75}.values());
  CHECK(ps::choose{3, 4}.counts() == ps::choose(std::vector<std::uint64_t>{3, 4}).counts());
  CHECK(ps::samples_per_epoch(7).count == 7);
}

TEST_CASE("order/weights: a schedule is a list of knots") {
  const ps::weight_schedule fade({{0, {1, 0}}, {100, {0, 1}}});
  REQUIRE(fade.knots().size() == 2);
  CHECK(fade.knots()[1].sample == 100);
  CHECK(fade.knots()[1].weights == std::vector<double>{0, 1});
  CHECK(ps::weight_schedule(fade.knots()).knots().size() == 2);
}
