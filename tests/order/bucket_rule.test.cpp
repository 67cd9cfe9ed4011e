// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/bucket_rule.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/order/order_chain.hpp>
#include <penstock/order/sample_list.hpp>

#include "support/bucket_rules.hpp"
#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bucket_rule_test {

namespace ps = penstock;
using namespace bucket_rules;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

using numbers = std::vector<std::uint64_t>;

/// Pairs by their sum: even, odd, and one that does not exist.
struct by_sum {
  std::uint64_t count = 2;

  [[nodiscard]] std::uint64_t size() const { return count; }
  [[nodiscard]] std::uint64_t bucket_of(const std::pair<int, int>& p) const {
    return p.first == 5 ? 7 : static_cast<std::uint64_t>(p.first + p.second) % 2;
  }
  [[nodiscard]] std::uint64_t length(std::uint64_t bucket) const { return 10 + bucket; }
  [[nodiscard]] std::string describe() const { return "by sum"; }
  void fingerprint(auto& h) const { h.add("by sum"); }
};
static_assert(ps::bucketing<by_sum, std::pair<int, int>> && !ps::bucketing<by_sum, int>);

}  // namespace

TEST_CASE("order/bucket_rule: whatever changes the steps changes the fingerprint") {
  const auto of = [](const auto& rule) {
    ps::fingerprint h;
    rule.fingerprint(h);
    return h.value();
  };
  std::vector<std::uint64_t> seen{of(rule_of(by_seven, {.max_samples = 9}))};
  const auto differs = [&](const auto& rule) {
    seen.push_back(of(rule));
    std::vector<std::uint64_t> sorted = seen;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
  };
  differs(rule_of(by_seven, {.max_samples = 8}));
  differs(rule_of(by_seven, {.max_tokens = 9}));
  differs(rule_of(by_seven, {.max_samples = 9, .quadratic = 2}));
  differs(rule_of(by_seven, {.max_samples = 9, .seed = 0}));
  differs(rule_of(by_seven, {.max_samples = 9, .window = 3}));
  differs(rule_of(by_seven, {.max_samples = 9}, {2, 5}));
  differs(rule_of(by_seven, {.max_samples = 9}, {2}));
  differs(rule_of(by_seven, {.max_samples = 9}, 2));
  differs(rule_of(by_seven, {.max_samples = 9}, ps::least_padding(2)));
  differs(rule_of<true>(by_seven, {.max_samples = 9}));
  auto rule = rule_of(by_seven, {.max_samples = 9});
  rule.multiple = 8;
  differs(rule);
  rule.at_end = ps::tail::drop;
  differs(rule);
  differs(rule_of(ps::sample_list(numbers{1, 2, 3}), {.max_samples = 9}));
}

TEST_CASE("order/bucket_rule: sizes are put into buckets by a table of one's own") {
  const auto sizes = [](std::uint64_t i) { return std::pair(static_cast<int>(i), 1); };
  using keys = ps::detail::size_keys<decltype(sizes), by_sum>;
  const ps::bucket_rule<keys> rule{keys({sizes}, by_sum{}), {.max_tokens = 22}};
  CHECK(rule.describe() == "bucket_by(by sum, max_tokens 22, tail keep)");
  const auto made = rule.make(ps::make_order_chain({5}), {.samples = 5});
  const auto bound = made.bind(0);
  std::vector<numbers> steps;
  for (std::uint64_t s = 0; s < bound.steps(); ++s) bound.list(s, steps.emplace_back());
  std::sort(steps.begin(), steps.end());
  CHECK(steps == std::vector<numbers>{{0, 2}, {1, 3}, {4}});
  // 10 tokens each in the first bucket, 11 in the other
  const ps::bucket_rule<keys> less{keys({sizes}, by_sum{}), {.max_tokens = 21}};
  CHECK(less.make(ps::make_order_chain({5}), {.samples = 5}).bind(0).steps() == 4);
  CHECK_THAT(error_of([&] { (void)rule.make(ps::make_order_chain({6}), {.samples = 6}).bind(0).at(0); }),
             contains("bucket 7 of 2 does not exist, in the length of sample 5"));
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{256}}) {
    const ps::bucket_rule<keys> wrong{keys({sizes}, by_sum{count}), {.max_tokens = 21}};
    CHECK_THAT(error_of([&] { (void)wrong.make(ps::make_order_chain({5}), {.samples = 5}); }),
               contains("1 to 255 buckets"));
  }
}

}  // namespace bucket_rule_test
