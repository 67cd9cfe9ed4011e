// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/projection.hpp>

#include "support/catch.hpp"

#include <array>
#include <span>
#include <string_view>
#include <type_traits>

namespace ps = penstock;

static_assert(std::is_trivially_copyable_v<ps::projection>, "a projection is cheap to copy");

namespace projection_test {

struct chooses {
  using penstock_part = ps::pointwise_tag;
  template <class>
  static constexpr ps::projection uses() {
    return ps::projection::of<"a">();
  }
};
struct says_nothing {
  using penstock_part = ps::pointwise_tag;
};
struct orders {
  using penstock_part = ps::order_tag;
  template <class>
  static constexpr ps::projection uses() {
    return {};
  }
};
struct says_it_otherwise {
  using penstock_part = ps::pointwise_tag;
  template <class>
  static constexpr bool uses() {
    return true;
  }
};
static_assert(ps::projecting_stage<chooses, int> && !ps::projecting_stage<says_nothing, int> &&
                  !ps::projecting_stage<orders, int> && !ps::projecting_stage<says_it_otherwise, int>,
              "a value stage says by uses() what it uses");

TEST_CASE("core/projection: everything, some fields, or none") {
  constexpr ps::projection all;
  CHECK((all.everything() && !all.nothing() && all.uses("a") && all.names().empty()));
  constexpr auto some = ps::projection::of<"jpg", "left.npy">();
  CHECK((!some.everything() && !some.nothing()));
  CHECK((some.uses("jpg") && some.uses("left.npy")));
  CHECK((!some.uses("npy") && !some.uses("JPG") && !some.uses("") && !some.uses("jpg;left.npy")));
  CHECK(some.names().size() == 2);
  constexpr auto none = ps::projection::none();
  CHECK((none.nothing() && !none.everything() && !none.uses("jpg") && !none.uses("")));
}

TEST_CASE("core/projection: it is a constant expression") {
  constexpr auto used = ps::projection::of<"jpg", "cls">();
  static_assert(used.uses("cls") && !used.uses("json"));
  CHECK(used.names().front() == "jpg");
}

TEST_CASE("core/projection: names owned by someone else") {
  const std::array<std::string_view, 2> names{"x", "y"};
  const ps::projection used{std::span(names)};
  const ps::projection copy = used;
  CHECK((copy.uses("x") && copy.uses("y") && !copy.uses("z")));
}

}  // namespace projection_test
