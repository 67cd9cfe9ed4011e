// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/weighted.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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
using reals = std::vector<double>;

static_assert(ps::order<ps::weighted_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::weighted_stage<ps::sample_list<double>>>, "weighted is an order stage");

namespace {

template <class T>
auto order_of_weights(const std::vector<T>& weights, std::uint64_t seed, std::uint64_t num_samples = 0) {
  return ps::weighted(weights, ps::seed(seed), {.num_samples = num_samples})
      .make(plain_input(weights.size()));
}

template <class T>
std::string refusal(const std::vector<T>& weights) {
  return error_of([&] { (void)order_of_weights(weights, 1); });
}

/// Chi-squared of the num_samples of some epochs, divided by its mean.
template <class T>
double unevenness(const std::vector<T>& weights, std::uint64_t num_samples) {
  const auto made = order_of_weights(weights, 5, num_samples);
  std::vector<double> met(weights.size());
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (const std::uint64_t p : epoch_of(made, epoch)) met[static_cast<std::size_t>(p)] += 1;
  double sum = 0, chi = 0, freedom = -1;
  for (const T w : weights) sum += static_cast<double>(w);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double wanted = static_cast<double>(weights[i]) / sum * 3 * static_cast<double>(num_samples);
    if (weights[i] == 0) CHECK(met[i] == 0);
    if (weights[i] == 0) continue;
    chi += (met[i] - wanted) * (met[i] - wanted) / wanted;
    freedom += 1;
  }
  return (chi - freedom) / std::sqrt(2 * std::max(1.0, freedom));
}

}  // namespace

TEST_CASE("order/weighted: samples are drawn in proportion to their weights") {
  reals skewed;
  std::vector<std::uint64_t> whole;
  ps::rng random(1, 0, 0);
  for (int i = 0; i < 300; ++i) {
    skewed.push_back(i % 10 == 0 ? 0 : 0.2 + random.uniform() * 5);
    whole.push_back(i % 7 == 0 ? 0 : 1 + random.below(9));
  }
  CHECK(std::abs(unevenness(skewed, 100'000)) < 4);
  CHECK(std::abs(unevenness(whole, 100'000)) < 4);
  CHECK(std::abs(unevenness(reals(1000, 1e300), 100'000)) < 4);
  CHECK(std::abs(unevenness(reals(100, std::numeric_limits<double>::denorm_min()), 30'000)) < 4);
  CHECK(std::abs(unevenness(std::vector<float>{1, 3}, 30'000)) < 4);
  CHECK(std::abs(unevenness(std::vector<int>{1, 0, 1}, 30'000)) < 4);
}

TEST_CASE("order/weighted: weights of very different size keep their share, and even the smallest is drawn") {
  const auto made = order_of_weights(reals{1, 0, 1e-300, 1}, 3, 5000);
  const numbers all = epoch_of(made);
  CHECK(std::find(all.begin(), all.end(), 1) == all.end());
  CHECK(std::count(all.begin(), all.end(), 0) > 2300);
  CHECK(std::count(all.begin(), all.end(), 3) > 2300);
  const reals tiny{1e-300};
  CHECK(epoch_of(order_of_weights(tiny, 3, 3)) == numbers{0, 0, 0});
}

TEST_CASE("order/weighted: a draw depends on seed, epoch and number alone") {
  const reals weights{1, 2, 3, 4, 5};
  const numbers some = epoch_of(order_of_weights(weights, 3, 1000), 2);
  const numbers more = epoch_of(order_of_weights(weights, 3, 2000), 2);
  CHECK(std::equal(some.begin(), some.end(), more.begin()));
  CHECK(some != epoch_of(order_of_weights(weights, 3, 1000), 1));
  CHECK(some != epoch_of(order_of_weights(weights, 4, 1000), 2));
  CHECK(order_of_weights(weights, 3).size() == 5);
}

TEST_CASE("order/weighted: the inverse gives a sample's first draw") {
  const auto made = order_of_weights(reals{1, 0, 3, 0.5, 8, 0.1}, 3, 12);
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    const numbers all = epoch_of(made, epoch);
    for (std::uint64_t p = 0; p < 7; ++p) {
      const auto place = std::find(all.begin(), all.end(), p);
      const auto found = made.position_of({epoch, p});
      REQUIRE(found.has_value() == (place != all.end()));
      if (found) CHECK(*found == ps::position{epoch, static_cast<std::uint64_t>(place - all.begin())});
    }
  }
}

TEST_CASE("order/weighted: after a split only the remaining samples are drawn") {
  reals weights;
  for (int i = 0; i < 100; ++i) weights.push_back(i);
  const auto part = ps::split(0.4, ps::seed(1)).make(plain_input(100));
  const auto made = ps::weighted(weights, ps::seed(2), {.num_samples = 20'000}).make(part.output());
  CHECK(ps::weighted(weights, ps::seed(2)).make(part.output()).size() == 40);
  std::vector<double> met(100);
  for (const std::uint64_t p : epoch_of(made)) met[static_cast<std::size_t>(part.bind(0)(p).index)] += 1;
  double sum = 0;
  for (const std::uint64_t p : epoch_of(part)) sum += static_cast<double>(p);
  for (std::size_t i = 0; i < 100; ++i) {
    const double wanted = part.position_of({0, i}) ? static_cast<double>(i) / sum * 20'000 : 0;
    CHECK(std::abs(met[i] - wanted) <= 5 * std::sqrt(wanted));
  }
}

TEST_CASE("order/weighted: invalid weights are refused with their sample") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  CHECK(refusal(reals{1, -0.5}) ==
        "penstock: the weight of sample 1 of a list of 2 is -0.5; weights are 0 or positive numbers [stage "
        "weighted]");
  CHECK_THAT(refusal(reals{1, 2, nan}), penstock_test::contains("the weight of sample 2"));
  CHECK_THAT(refusal(reals{inf}), penstock_test::contains("inf"));
  CHECK_THAT(refusal(std::vector<int>{3, -4}), penstock_test::contains("is -4"));
  CHECK_THAT(refusal(reals{0, -0.0}), penstock_test::contains("are all 0"));
  CHECK_THAT(refusal(std::vector<unsigned>{0}), penstock_test::contains("are all 0"));
  CHECK_THAT(refusal(reals{1.5e308, 1.5e308}), penstock_test::contains("more than a double holds"));
  CHECK_THAT(refusal(std::vector<std::uint64_t>{std::uint64_t{1} << 62, std::uint64_t{1} << 62}),
             penstock_test::contains("add up to 2^63 or more"));
  CHECK(refusal(std::vector<std::uint64_t>{(std::uint64_t{1} << 63) - 1}).empty());
  CHECK(refusal(reals{}).empty());
  CHECK(order_of_weights(reals{}, 1, 10).size() == 0);
  CHECK_THAT(error_of([] { (void)order_of_weights(reals{1}, 1, ~std::uint64_t{0}); }),
             penstock_test::contains("are more than 2^62"));
  CHECK_FALSE(error_of([] { (void)ps::weighted(reals{1}, ps::seed(1)).make(plain_input(2)); }).empty());
  CHECK_FALSE(error_of([] {
                (void)ps::weighted(reals{1}, ps::seed(1)).make(ps::shuffle(ps::seed(1)).make({1}).output());
              }).empty());
}

TEST_CASE("order/weighted: describes itself") {
  CHECK(ps::weighted(reals{1}, ps::seed(7)).describe() == "weighted(a list of 1, seed 7)");
  CHECK(ps::weighted(reals{1}, ps::seed(7), {.num_samples = 9}).describe() ==
        "weighted(a list of 1, seed 7, num_samples 9)");
}
