// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/part.hpp>

#include "support/catch.hpp"

#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace part_test {

struct source {
  using penstock_part = ps::source_tag;
};
struct pointwise {
  using penstock_part = ps::pointwise_tag;
};
struct order {
  using penstock_part = ps::order_tag;
};
struct poison {
  using penstock_part = ps::poison_tag;
};

static_assert(ps::part<source> && ps::part<const source&> && !ps::part<int> && !ps::part<std::vector<int>>,
              "a part is a type that says so");
static_assert(ps::part_of_kind<source, ps::source_tag> && !ps::part_of_kind<source, ps::plan_tag>,
              "a part has one kind");
static_assert(!ps::part_of_kind<int, ps::source_tag> && !ps::part_of_kind<int*, ps::plan_tag>,
              "other types have none");
static_assert(ps::stage<pointwise> && ps::stage<order&> && !ps::stage<source> && !ps::stage<poison> &&
                  !ps::stage<int>,
              "a stage is a part that is neither a source nor a plan");
static_assert(ps::value_stage<pointwise> && !ps::value_stage<order>, "value stages work on values");

}  // namespace part_test

TEST_CASE("core/part: a part without members is empty") { CHECK(std::is_empty_v<part_test::pointwise>); }
