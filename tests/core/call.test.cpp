// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/call.hpp>

#include "support/catch.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace ps = penstock;

namespace call_test {

struct none {};

std::uint64_t first_word(ps::position at, std::uint32_t part, std::uint64_t seed, std::uint64_t stream) {
  none scratch;
  return ps::call<none>{at, part, seed, stream, scratch}.random()();
}

}  // namespace call_test

TEST_CASE("core/call: random numbers depend on seed, position, part and stage") {
  using call_test::first_word;
  CHECK(first_word({1, 2}, 0, 3, 4) == ps::rng(3, 1, 2, 4)());
  CHECK(first_word({1, 2}, 1, 3, 4) == first_word({1, 2}, 1, 3, 4));
  const std::set<std::uint64_t> all{first_word({1, 2}, 0, 3, 4), first_word({2, 2}, 0, 3, 4),
                                    first_word({1, 3}, 0, 3, 4), first_word({1, 2}, 1, 3, 4),
                                    first_word({1, 2}, 2, 3, 4), first_word({1, 2}, 0, 4, 4),
                                    first_word({1, 2}, 0, 3, 5), first_word({1, 2}, 1, 3, 5)};
  CHECK(all.size() == 8);
}

TEST_CASE("core/call: a member is read or called, of values and of what points or refers to them") {
  struct base {
    std::string text = "abc";
    [[nodiscard]] std::size_t longer_by(std::size_t more) const { return text.size() + more; }
  };
  struct derived : base {};
  using ps::detail::call_member;
  derived value;
  CHECK(&call_member(&base::text, value) == &value.text);
  CHECK(&call_member(&base::text, &value) == &value.text);
  CHECK(&call_member(&base::text, std::ref(value)) == &value.text);
  CHECK(call_member(&base::text, std::make_unique<derived>()) == "abc");
  CHECK(call_member(&base::longer_by, value, std::size_t{2}) == 5);
  CHECK(call_member(&base::longer_by, std::make_shared<derived>(), std::size_t{2}) == 5);
  STATIC_REQUIRE(
      std::is_same_v<decltype(call_member(&base::text, std::as_const(value))), const std::string&>);
  STATIC_REQUIRE(std::is_same_v<decltype(call_member(&base::text, derived())), std::string>);
}
