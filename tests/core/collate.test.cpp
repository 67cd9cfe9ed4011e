// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/collate.hpp>

#include "support/catch.hpp"

#include <type_traits>

namespace ps = penstock;

namespace collate_test {

using txt = ps::name_of<"txt">;
using jpg = ps::name_of<"jpg">;
template <class Name, class... Policies>
using policy = typename ps::detail::policy_for<Name, Policies...>::type;
using own_txt = decltype(ps::collate<"txt">(ps::ragged));
using own_jpg = decltype(ps::collate<"jpg">(ps::pad_to_longest));

static_assert(std::is_same_v<policy<txt>, ps::stack_policy>, "without a policy fields are stacked");
static_assert(std::is_same_v<policy<void>, ps::stack_policy>, "elements without names are stacked too");
static_assert(std::is_same_v<policy<txt, ps::ragged_policy>, ps::ragged_policy> &&
                  std::is_same_v<policy<void, ps::pad_policy>, ps::pad_policy>,
              "a policy without a name is for all");
static_assert(std::is_same_v<policy<txt, own_txt>, ps::ragged_policy> &&
                  std::is_same_v<policy<jpg, own_txt>, ps::stack_policy>,
              "a policy with a name is for one field");
static_assert(std::is_same_v<policy<txt, ps::pad_policy, own_txt>, ps::ragged_policy> &&
                  std::is_same_v<policy<txt, own_txt, ps::pad_policy>, ps::ragged_policy> &&
                  std::is_same_v<policy<jpg, own_txt, ps::pad_policy>, ps::pad_policy>,
              "a field's own policy goes before that for all, wherever they stand");
static_assert(std::is_same_v<policy<jpg, own_txt, own_jpg>, ps::pad_policy>, "each field may have its own");
static_assert(ps::detail::padding_multiple<own_jpg> == 1 &&
                  ps::detail::padding_multiple<decltype(ps::collate<"jpg">(ps::pad_to_multiple<8>))> == 8 &&
                  ps::detail::padding_multiple<own_txt> == 0 &&
                  ps::detail::padding_multiple<std::remove_cv_t<decltype(ps::pad_to_largest)>> == 0,
              "those pad the first dimension that say to what");
static_assert(std::is_empty_v<own_txt> && std::is_empty_v<ps::ragged_policy>,
              "policies are types and nothing else");

}  // namespace collate_test

TEST_CASE("core/collate: policies are distinguished from other options") {
  CHECK(ps::detail::is_policy<ps::stack_policy>);
  CHECK(ps::detail::is_policy<ps::pad_policy>);
  CHECK(ps::detail::is_policy<ps::ragged_policy>);
  CHECK(ps::detail::is_policy<ps::channels_first_policy>);
  CHECK(ps::detail::is_policy<ps::pitched_policy<64>>);
  CHECK(ps::detail::is_policy<decltype(ps::pad_to_largest_with<3>(ps::channels_first))>);
  CHECK(!ps::detail::is_policy<int>);
  CHECK(!ps::detail::is_policy<collate_test::own_txt>);
}

TEST_CASE("core/collate: which policies stack or leave gaps, and the ranks they take") {
  namespace d = ps::detail;
  CHECK((d::stacks<ps::stack_policy> && d::stacks<ps::channels_first_policy> &&
         d::stacks<ps::pitched_policy<4>>));
  CHECK_FALSE((d::stacks<ps::ragged_policy> || d::stacks<ps::pad_policy>));
  CHECK((d::arranges<ps::channels_first_policy> && d::arranges<ps::pitched_policy<4>> &&
         !d::arranges<ps::stack_policy> && !d::arranges<ps::pad_policy>));
  CHECK((d::has_gaps<ps::pitched_policy<4>> && !d::has_gaps<ps::channels_first_policy>));
  CHECK((d::pitch_of<ps::pitched_policy<4>> == 4 && d::pitch_of<ps::stack_policy> == 0));
  using largest = ps::pad_all_policy<>;
  using planes = decltype(ps::pad_to_largest(ps::channels_first));
  CHECK_FALSE((d::stacks<largest> || d::arranges<largest> || d::has_gaps<planes> || d::stacks<planes>));
  CHECK((d::pads_all<largest> && d::pads_all<planes> && !d::pads_all<ps::pad_policy>));
  CHECK((d::arranges<d::order_of<planes>> && !d::arranges<d::order_of<largest>>));
  CHECK((d::fill_fits<largest, char> && d::fill_fits<ps::pad_all_policy<255>, unsigned char> &&
         !d::fill_fits<ps::pad_all_policy<256>, unsigned char> && d::fill_fits<ps::stack_policy, char>));
  for (const int rank : {-1, 0, 1, 3}) {
    CHECK(d::takes_rank<largest>(rank));
    CHECK(d::takes_rank<planes>(rank) == (rank == -1 || rank == 3));
    CHECK(d::takes_rank<ps::stack_policy>(rank));
    CHECK(d::takes_rank<ps::channels_first_policy>(rank) == (rank == -1 || rank == 3));
    CHECK(d::takes_rank<ps::pitched_policy<64>>(rank) == (rank != 0));
  }
}
