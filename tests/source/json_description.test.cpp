// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/source/files/json_description.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <limits>

using penstock::detail::number_at;
using penstock::detail::parse_description;
using penstock::detail::whole_number;
using penstock_test::contains;

TEST_CASE("source/json_description: whole numbers that fit their type, and no others") {
  const auto of = []<class T>(std::string_view text, T) {
    return whole_number<T>(parse_description(text), "n");
  };
  CHECK(of("-5", int{}) == -5);
  CHECK(of("-9223372036854775808", std::int64_t{}) == std::numeric_limits<std::int64_t>::min());
  CHECK(of("18446744073709551615", std::uint64_t{}) == std::numeric_limits<std::uint64_t>::max());
  const char* const asked = "\"n\" should be a whole number of 32 bits, and is ";
  CHECK_THROWS_WITH(of("1e99", int{}), contains(asked) && contains("1e+99"));
  CHECK_THROWS_WITH(of("1.0", int{}), contains(asked) && contains("1.0"));
  CHECK_THROWS_WITH(of("2147483648", int{}), contains("2147483648"));
  CHECK_THROWS_WITH(of("-1", std::uint64_t{}), contains("64 bits") && contains("-1"));
  CHECK_THROWS_WITH(of("18446744073709551615", std::int64_t{}), contains("184467"));
  CHECK_THROWS_WITH(of("\"5\"", int{}), contains("JSON of the type string"));
  CHECK_THROWS_WITH(of("null", int{}), contains("JSON of the type null"));
  CHECK(number_at<int>(parse_description(R"({"id":7})"), "id") == 7);
  CHECK_THROWS_WITH(number_at<int>(parse_description(R"({"id":"7"})"), "id"),
                    contains("\"id\" should be a whole number of 32 bits, and is JSON of the type string"));
}
