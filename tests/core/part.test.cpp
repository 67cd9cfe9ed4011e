// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/part.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <string>
#include <string_view>
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
struct even {
  using penstock_part = ps::batch_tag;
  static constexpr bool uneven_steps = false;
};
struct uneven {
  using penstock_part = ps::batch_tag;
  static constexpr bool uneven_steps = true;
};
static_assert(ps::uneven_batch<uneven> && !ps::uneven_batch<even> && !ps::uneven_batch<order>,
              "a batch says that its steps have no fixed number of samples");
struct renumbering {
  using penstock_part = ps::source_tag;
  static constexpr bool renumbers = true;
};
static_assert(ps::renumbering_part<renumbering> && !ps::renumbering_part<source>,
              "a source says that its samples have other numbers in other epochs");
struct told_nothing {
  using penstock_part = ps::order_tag;
  std::uint64_t seed = 1;
  static constexpr bool works_forward = false;
};
struct told_all {
  using penstock_part = ps::order_tag;
  static constexpr std::string_view stage_name = "all";
  static constexpr bool works_forward = true, counts_only = true;
  [[nodiscard]] std::string describe() const { return "all(7)"; }
  [[nodiscard]] std::uint64_t plan_seed() const { return 7; }
};
struct draws_for_numbers {
  using penstock_part = ps::pointwise_tag;
  template <class Element>
  static constexpr bool uses_random = std::is_arithmetic_v<Element>;
  [[nodiscard]] std::uint64_t stream_address() const { return 3; }
};
static_assert(!ps::seeding_part<told_nothing> && !ps::forward_order<told_nothing> &&
                  !ps::counting_order<told_nothing> && !ps::named_part<told_nothing>,
              "what a part does not say it does not have: a member called seed is no seed of the plan");
static_assert(ps::seeding_part<told_all> && ps::seeding_part<const told_all&> &&
                  ps::forward_order<told_all> && ps::counting_order<told_all> && ps::named_part<told_all> &&
                  ps::described_part<told_all>,
              "what it says it has");
static_assert(!ps::seed_annotation<told_all>, "an order with a seed is not an annotation");
static_assert(ps::stage_uses_random<draws_for_numbers, int> &&
                  !ps::stage_uses_random<draws_for_numbers, std::string> &&
                  !ps::stage_uses_random<pointwise, int>,
              "whether a stage draws may depend on the element");
static_assert(ps::addressed_stage<draws_for_numbers> && !ps::addressed_stage<pointwise>,
              "an address is told too");
static_assert(ps::value_stage<pointwise> && !ps::value_stage<order>, "value stages work on values");

}  // namespace part_test

TEST_CASE("core/part: a part without members is empty") { CHECK(std::is_empty_v<part_test::pointwise>); }
