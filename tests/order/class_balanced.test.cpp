// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/class_balanced.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/listed_order.hpp"
#include "support/order_input.hpp"

namespace ps = penstock;
using penstock_test::epoch_of;
using penstock_test::error_of;
using penstock_test::plain_input;
using numbers = std::vector<std::uint64_t>;
using labels = ps::sample_list<int>;

static_assert(ps::order<ps::class_balanced_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::class_balanced_stage<labels>>, "class_balanced is an order stage");

namespace {

labels random_labels(ps::rng& random, std::uint64_t n, std::uint64_t classes) {
  std::vector<int> all;
  while (all.size() < n)
    all.push_back(static_cast<int>(std::min(random.below(classes), random.below(classes))) - 2);
  return labels(all);
}

}  // namespace

TEST_CASE("order/class_balanced: every class appears equally often, and its samples in turn") {
  ps::rng random(1, 0, 0);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t n = 1 + random.below(random.chance(0.1) ? 3000 : 200);
    const auto values = random_labels(random, n, 1 + random.below(8));
    const auto how = random.chance(0.5) ? ps::per_class::largest : ps::per_class::smallest;
    const auto made = ps::class_balanced(values, ps::seed(random()), how).make(plain_input(n));
    std::map<int, std::uint64_t> sizes;
    for (std::uint64_t i = 0; i < n; ++i) ++sizes[values[i]];
    std::uint64_t each = sizes.begin()->second;
    for (const auto& [label, size] : sizes)
      each = how == ps::per_class::largest ? std::max(each, size) : std::min(each, size);
    REQUIRE(made.size() == each * sizes.size());

    // over epochs: within a class the counts differ by at most one
    std::map<std::uint64_t, std::uint64_t> met;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      std::map<int, std::uint64_t> count;
      const numbers all = epoch_of(made, epoch);
      for (const std::uint64_t p : all) {
        ++count[values[p]];
        ++met[p];
      }
      bool equal = true;
      for (const auto& [label, size] : sizes) equal = equal && count[label] == each;
      CHECK(equal);
      std::map<int, std::pair<std::uint64_t, std::uint64_t>> bounds;
      for (std::uint64_t p = 0; p < n; ++p) {
        auto& [low, high] = bounds.try_emplace(values[p], met[p], met[p]).first->second;
        low = std::min(low, met[p]);
        high = std::max(high, met[p]);
      }
      bool in_turn = true;
      for (const auto& [label, bound] : bounds) in_turn = in_turn && bound.second - bound.first <= 1;
      CHECK(in_turn);
      if (round % 4 != 0) continue;
      bool first = true;
      for (std::uint64_t p = 0; p < n; ++p) {
        const auto place = std::find(all.begin(), all.end(), p);
        const auto found = made.position_of({epoch, p});
        first = first && found.has_value() == (place != all.end()) &&
                (!found || *found == ps::position{epoch, static_cast<std::uint64_t>(place - all.begin())});
      }
      CHECK(first);
    }
    CHECK_FALSE(made.position_of({0, n}).has_value());
  }
}

TEST_CASE("order/class_balanced: epochs and seeds have different orders, the classes are mixed") {
  std::vector<int> all(1000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 10 == 0 ? 1 : 0;
  const labels values(all);
  const auto made = ps::class_balanced(values, ps::seed(3)).make(plain_input(1000));
  CHECK(made.size() == 1800);
  const numbers order = epoch_of(made);
  CHECK(order == epoch_of(made));
  CHECK(order != epoch_of(made, 1));
  CHECK(order != epoch_of(ps::class_balanced(values, ps::seed(4)).make(plain_input(1000))));
  // 180 stretches of ten: the number of the rare class in each has the variance of draws without
  // replacement.
  double chi = 0;
  for (std::size_t i = 0; i < order.size(); i += 10) {
    double rare = 0;
    for (std::size_t k = i; k < i + 10; ++k) rare += values[order[k]];
    chi += (rare - 5) * (rare - 5) / 2.5;
  }
  CHECK(std::abs(chi - 180) < 5 * std::sqrt(2.0 * 180));
}

TEST_CASE("order/class_balanced: classes do not depend on where their samples are") {
  const ps::sample_list texts(std::vector<std::string>{"b", "a", "b", "c"});
  const auto made = ps::class_balanced(texts, ps::seed(1)).make(plain_input(4));
  CHECK(made.size() == 6);
  const ps::sample_list wide(std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max(), 0});
  CHECK(ps::class_balanced(wide, ps::seed(1)).make(plain_input(2)).size() == 2);
  CHECK(ps::class_balanced(labels({}), ps::seed(1)).make(plain_input(0)).size() == 0);
}

TEST_CASE("order/class_balanced: after a split it balances what is left") {
  ps::rng random(9, 0, 0);
  const auto values = random_labels(random, 500, 5);
  const auto part = ps::split(0.7, ps::seed(1)).make(plain_input(500));
  const auto made = ps::class_balanced(values, ps::seed(2)).make(part.output());
  std::map<int, std::uint64_t> left, count;
  for (const std::uint64_t p : epoch_of(part)) ++left[values[p]];
  for (const std::uint64_t p : epoch_of(made)) ++count[values[part.bind(0)(p).index]];
  std::uint64_t maximum = 0;
  for (const auto& [label, size] : left) maximum = std::max(maximum, size);
  CHECK(count.size() == left.size());
  for (const auto& [label, size] : count) CHECK(size == maximum);
}

TEST_CASE("order/class_balanced: values of other samples are refused; it describes itself") {
  const labels values({1, 2, 2});
  CHECK_FALSE(error_of([&] { (void)ps::class_balanced(values, ps::seed(1)).make(plain_input(4)); }).empty());
  CHECK_THAT(
      error_of([&] {
        (void)ps::class_balanced(values, ps::seed(1)).make(ps::shuffle(ps::seed(1)).make({3}).output());
      }),
      penstock_test::contains("write class_balanced before it"));
  CHECK_THAT(error_of([&] {
               (void)ps::class_balanced(values, ps::seed(1)).make(plain_input(3)).bind(~std::uint64_t{0});
             }),
             penstock_test::contains("is beyond 64 bits"));
  CHECK(ps::class_balanced(values, ps::seed(7)).describe() == "class_balanced(a list of 3, seed 7)");
  CHECK(ps::class_balanced(values, ps::seed(7), ps::per_class::smallest).describe() ==
        "class_balanced(a list of 3, seed 7, smallest)");
}
