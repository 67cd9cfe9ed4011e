// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/listed_order.hpp"
#include "support/order_input.hpp"

namespace ps = penstock;
using penstock_test::check_keeps_order;
using penstock_test::each_once;
using penstock_test::epoch_of;
using penstock_test::error_of;
using penstock_test::input;
using penstock_test::plain_input;

static_assert(ps::order<ps::fold_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::fold_stage>, "fold is an order stage");

TEST_CASE("order/fold: all parts are disjoint, complete and of equal size; the rest is all other parts") {
  ps::rng random(2, 0, 0);
  for (int round = 0; round < 600; ++round) {
    const std::uint64_t folds = 2 + random.below(random.chance(0.1) ? 300 : 9), seed = random();
    const auto in = input({random.below(90), random.below(200), 0, random.below(30)});
    INFO("n " << in.size << ", " << folds << " folds, seed " << seed);
    std::vector<unsigned> times(static_cast<std::size_t>(in.size));
    for (std::uint64_t i = 0; i < folds; ++i) {
      const std::uint64_t kept = check_keeps_order(ps::fold(i, folds, ps::seed(seed)).make(in), in, times);
      CHECK(kept >= in.size / folds);
      CHECK(kept <= in.size / folds + 1);
    }
    CHECK(each_once(times));
    std::vector<unsigned> both(static_cast<std::size_t>(in.size));
    const auto one = ps::fold(random.below(folds), folds, ps::seed(seed));
    check_keeps_order(one.make(in), in, both);
    check_keeps_order(one.complement().make(in), in, both);
    CHECK(each_once(both));
  }
}

TEST_CASE("order/fold: over seeds every position is in every part equally often") {
  const std::uint64_t n = 200, folds = 5, seeds = 5000;
  std::vector<double> met(n);
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    for (const std::uint64_t p : epoch_of(ps::fold(2, folds, ps::seed(seed)).make(plain_input(n))))
      met[static_cast<std::size_t>(p)] += 1;
  const double mean = static_cast<double>(seeds) / static_cast<double>(folds);
  double chi = 0;
  for (const double m : met) chi += (m - mean) * (m - mean) / mean;
  const double expected = static_cast<double>(n) * 0.8;
  CHECK(chi < expected + 5 * std::sqrt(2 * expected));
}

TEST_CASE("order/fold: folds that do not exist are refused") {
  CHECK(error_of([] { (void)ps::fold(5, 5, ps::seed(1)); }) ==
        "penstock: there is no fold 5 of 5; write fold(i, folds, seed(7)) with i below folds, and 2 to "
        "2^32 folds "
        "[stage fold]");
  CHECK_FALSE(error_of([] { (void)ps::fold(0, 1, ps::seed(1)); }).empty());
  CHECK_FALSE(error_of([] { (void)ps::fold(0, 0, ps::seed(1)); }).empty());
  CHECK_FALSE(error_of([] { (void)ps::fold(0, std::uint64_t{1} << 33, ps::seed(1)); }).empty());
  const auto endless = ps::repeat().make({10, nullptr}).output();
  CHECK_THAT(error_of([&] { (void)ps::fold(0, 2, ps::seed(1)).make(endless); }),
             penstock_test::contains("write fold before repeat()"));
  CHECK(ps::fold(1, 5, ps::seed(7)).complement().describe() == "fold(1 of 5, seed 7).complement()");
}
