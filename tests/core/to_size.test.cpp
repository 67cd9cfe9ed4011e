// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/to_size.hpp>

#include "support/catch.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>

TEST_CASE("core/to_size: a count keeps its value and becomes a size") {
  using penstock::detail::to_size;
  STATIC_REQUIRE(std::same_as<decltype(to_size(std::uint64_t{})), std::size_t>);
  STATIC_REQUIRE(to_size(std::uint64_t{7}) == 7);
  STATIC_REQUIRE(to_size(std::uint8_t{255}) == 255);
  CHECK(to_size(std::uint32_t{4'000'000'000}) == 4'000'000'000u);
}
