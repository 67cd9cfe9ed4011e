// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/name.hpp>

#include "support/catch.hpp"

#include <string_view>
#include <type_traits>

namespace ps = penstock;

static_assert(std::is_same_v<ps::name_of<"jpg">, ps::name<'j', 'p', 'g'>>, "a name is spelled in its type");
static_assert(!std::is_same_v<ps::name_of<"jpg">, ps::name_of<"jp">>, "different names are different types");
static_assert(ps::name_of<"seg.png">::value == "seg.png", "a name may have dots");
static_assert(ps::name_of<"">::value.empty(), "a name may be empty");
static_assert(std::is_empty_v<ps::name_of<"jpg">>, "a name costs nothing");
static_assert(ps::fixed_string("abc").length == 3, "the length excludes the final zero");

TEST_CASE("core/name: a name's text ends in zero") {
  CHECK(std::string_view(ps::name_of<"cls">::text) == "cls");
  CHECK(ps::name_of<"cls">::value.size() == 3);
}
