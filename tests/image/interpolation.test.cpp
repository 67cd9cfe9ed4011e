// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/image/interpolation.hpp>

#include "support/catch.hpp"

namespace interpolation_test {

namespace ps = penstock;

TEST_CASE("image/interpolation: each has its name") {
  CHECK(ps::to_string(ps::interpolation::nearest) == "nearest");
  CHECK(ps::to_string(ps::interpolation::bilinear) == "bilinear");
  CHECK(ps::to_string(ps::interpolation::bicubic) == "bicubic");
  CHECK(ps::to_string(ps::interpolation::area) == "area");
  CHECK(ps::to_string(static_cast<ps::interpolation>(9)) == "unknown");
}

}  // namespace interpolation_test
