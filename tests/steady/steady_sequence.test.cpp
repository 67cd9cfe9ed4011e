// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Operations on sequences allocate nothing in the steady state.

#include "support/catch.hpp"
#include "support/steady_test.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/sequence/fill_in_the_middle.hpp>
#include <penstock/sequence/join_fields.hpp>
#include <penstock/sequence/join_turns.hpp>
#include <penstock/sequence/mask_tokens.hpp>
#include <penstock/sequence/span_corruption.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ps = penstock;
using penstock_test::check_steady;

namespace steady_sequence_test {

const std::vector<std::int32_t> numbers(300, 7);
const auto documents = ps::generated(80, [](std::uint64_t i) {
  using tokens = std::span<const std::int32_t>;
  return ps::record<ps::field<"tokens", tokens>, ps::field<"other", tokens>>(
      tokens(numbers).first(20 + i * 37 % 200), tokens(numbers).first(i % 50));
});
const auto plan = documents | ps::shuffle(ps::seed(3));

TEST_CASE("steady/steady_sequence: masking and rearranging") {
  check_steady(plan | ps::map(ps::mask_tokens({.mask_token = 103, .vocabulary = 1000, .special = {0, 1}})) |
                   ps::batch(8, ps::ragged),
               "mask_tokens");
  check_steady(plan |
                   ps::map<"tokens">(
                       ps::fill_in_the_middle({.prefix_token = 1, .middle_token = 2, .suffix_token = 3})) |
                   ps::batch(8, ps::ragged),
               "fill_in_the_middle");
  check_steady(plan | ps::map(ps::span_corruption()) | ps::batch(8, ps::ragged), "span_corruption");
}

TEST_CASE("steady/steady_sequence: joining") {
  check_steady(plan | ps::map(ps::join_fields<"tokens", "tokens", "other">({.end_token = 2})) |
                   ps::batch(8, ps::ragged),
               "join_fields");
  check_steady(plan | ps::map(ps::join_fields<"tokens", "tokens", "other">()) |
                   ps::map(ps::mask_tokens({.mask_token = 103, .vocabulary = 1000})) |
                   ps::batch(8, ps::ragged),
               "join_fields and mask_tokens");
  check_steady(plan | ps::map(ps::join_turns<std::int32_t>([](const auto& sample, auto& into) {
                 into.add(ps::get<"tokens">(sample));
                 into.add(ps::get<"other">(sample), true);
               })) |
                   ps::batch(8, ps::ragged),
               "join_turns");
}

}  // namespace steady_sequence_test
