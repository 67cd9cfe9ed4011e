// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/detail/json_description.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>

using penstock::detail::parse_description;
using penstock::detail::whole_number;
using penstock_test::contains;

TEST_CASE("source/json_description: whole numbers that fit their type, and no others") {
  CHECK(whole_number<int>(parse_description("-5")) == -5);
  CHECK(whole_number<std::int64_t>(parse_description("-9223372036854775808")) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(whole_number<std::uint64_t>(parse_description("18446744073709551615")) ==
        std::numeric_limits<std::uint64_t>::max());
  const char* const asked = "there should be a whole number of 32 bits, and there is ";
  CHECK_THROWS_WITH(whole_number<int>(parse_description("1e99")), contains(asked) && contains("1e+99"));
  CHECK_THROWS_WITH(whole_number<int>(parse_description("1.0")), contains(asked) && contains("1.0"));
  CHECK_THROWS_WITH(whole_number<int>(parse_description("2147483648")), contains("2147483648"));
  CHECK_THROWS_WITH(whole_number<std::uint64_t>(parse_description("-1")),
                    contains("64 bits") && contains("-1"));
  CHECK_THROWS_WITH(whole_number<std::int64_t>(parse_description("18446744073709551615")),
                    contains("184467"));
  CHECK_THROWS_WITH(whole_number<int>(parse_description("\"5\"")), contains("JSON of the type string"));
  CHECK_THROWS_WITH(whole_number<int>(parse_description("null")), contains("JSON of the type null"));
}
