// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/token_value.hpp>

#include "support/catch.hpp"

namespace token_value_test {

namespace ps = penstock;

TEST_CASE("core/token_value: whole numbers are tokens, characters and real numbers are not") {
  STATIC_REQUIRE(ps::token_value<std::uint8_t>);
  STATIC_REQUIRE(ps::token_value<std::uint16_t>);
  STATIC_REQUIRE(ps::token_value<std::int64_t>);
  STATIC_REQUIRE(!ps::token_value<char>);
  STATIC_REQUIRE(!ps::token_value<bool>);
  STATIC_REQUIRE(!ps::token_value<float>);
  STATIC_REQUIRE(!ps::token_value<const std::int32_t>);
}

}  // namespace token_value_test
