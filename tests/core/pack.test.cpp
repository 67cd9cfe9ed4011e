// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/pack.hpp>

#include "support/catch.hpp"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace ps = penstock;
using ps::detail::at;
using ps::detail::join;
using ps::detail::make_pack;

namespace pack_test {

struct nothing {};

static_assert(std::is_trivially_copyable_v<ps::pack<int, double>>, "a pack of numbers is copied as bytes");
static_assert(std::is_empty_v<ps::pack<nothing>>, "an empty type takes no room in a pack");
static_assert(std::is_same_v<ps::detail::type_at<1, ps::pack<int, nothing>>, nothing>,
              "type_at names a value's type");
static_assert(at<1>(join(make_pack(1, 'x'), make_pack(2.5))) == 'x', "packs are joined at compile time too");

TEST_CASE("pack keeps values in order", "[pack]") {
  auto mixed = make_pack(1, std::string("two"), nothing{}, nothing{});
  CHECK(mixed.size == 4);
  CHECK(at<1>(mixed) == "two");
  at<0>(mixed) = 7;
  CHECK(std::as_const(mixed).apply(
            [](int n, const std::string& s, nothing, nothing) { return std::to_string(n) + s; }) == "7two");
  mixed.apply([](auto& first, auto&...) { first = 8; });
  CHECK(at<0>(mixed) == 8);
}

TEST_CASE("pack moves values that cannot be copied", "[pack]") {
  auto one = make_pack(std::make_unique<int>(3));
  const auto both = join(std::move(one), make_pack(std::string("end")));
  CHECK(*at<0>(both) == 3);
  CHECK(at<1>(both) == "end");
  CHECK(join(ps::pack<>{}, ps::pack<>{}).size == 0);
}

TEST_CASE("pack of defaults has values", "[pack]") { CHECK(at<0>(ps::pack<int>{}) == 0); }

}  // namespace pack_test
