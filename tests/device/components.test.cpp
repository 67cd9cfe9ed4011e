// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/device/components.hpp>

#include "support/catch.hpp"

#include <type_traits>

namespace ps = penstock;

TEST_CASE("device/components: the name of a device is there without its header") {
  STATIC_REQUIRE(std::is_pointer_v<ps::cuda*>);
}
