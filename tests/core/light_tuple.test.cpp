// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/light_tuple.hpp>

#include "support/catch.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ps = penstock;
using ps::detail::at;
using ps::detail::join;
using ps::detail::make_light_tuple;

namespace pack_test {

struct nothing {};

static_assert(std::is_trivially_copyable_v<ps::light_tuple<int, double>>,
              "a light_tuple of numbers is copied as bytes");
static_assert(std::is_empty_v<ps::light_tuple<nothing>>, "an empty type takes no room in a light_tuple");
static_assert(std::is_same_v<ps::detail::type_at<1, ps::light_tuple<int, nothing>>, nothing>,
              "type_at names a value's type");
static_assert(at<1>(join(make_light_tuple(1, 'x'), make_light_tuple(2.5))) == 'x',
              "packs are joined at compile time too");

TEST_CASE("light_tuple keeps values in order", "[light_tuple]") {
  auto mixed = make_light_tuple(1, std::string("two"), nothing{}, nothing{});
  CHECK(mixed.size == 4);
  CHECK(at<1>(mixed) == "two");
  at<0>(mixed) = 7;
  CHECK(std::as_const(mixed).apply(
            [](int n, const std::string& s, nothing, nothing) { return std::to_string(n) + s; }) == "7two");
  mixed.apply([](auto& first, auto&...) { first = 8; });
  CHECK(at<0>(mixed) == 8);
}

TEST_CASE("light_tuple moves values that cannot be copied", "[light_tuple]") {
  auto one = make_light_tuple(std::make_unique<int>(3));
  const auto both = join(std::move(one), make_light_tuple(std::string("end")));
  CHECK(*at<0>(both) == 3);
  CHECK(at<1>(both) == "end");
  CHECK(join(ps::light_tuple<>{}, ps::light_tuple<>{}).size == 0);
}

TEST_CASE("a light_tuple of defaults has values", "[light_tuple]") {
  CHECK(at<0>(ps::light_tuple<int>{}) == 0);
}

}  // namespace pack_test
