// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/mapped_field.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <type_traits>

namespace ps = penstock;

namespace {

struct other_role {};
template <ps::fixed_string Name>
constexpr ps::named_field<Name, other_role> as_other{Name.text};

template <ps::mapped_field Field>
using seen = ps::detail::as_role<Field>;

static_assert(std::is_same_v<seen<"jpg">, ps::detail::role_of_field<ps::name_of<"jpg">, ps::changed_field>>,
              "a literal is a field that is changed");
static_assert(
    std::is_same_v<seen<as_other<"jpg">>, ps::detail::role_of_field<ps::name_of<"jpg">, other_role>>,
    "a field may have another role");

}  // namespace

TEST_CASE("core/mapped_field: the role of plain fields calls the functions themselves") {
  const int one = 1;
  CHECK(&ps::changed_field::function(one) == &one);
}
