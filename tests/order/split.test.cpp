// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/listed_order.hpp"
#include "support/order_input.hpp"
#include "support/test_data.hpp"

namespace ps = penstock;
using penstock_test::check_keeps_order;
using penstock_test::each_once;
using penstock_test::epoch_of;
using penstock_test::error_of;
using penstock_test::input;
using penstock_test::plain_input;

static_assert(ps::order<ps::split_order>, "the order meets the concept");
static_assert(ps::order_stage<ps::split_stage>, "split is an order stage");

namespace {

std::vector<std::uint64_t> random_shards(ps::rng& random, std::uint64_t maximum) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t left = random.below(maximum), shards = random.below(12); shards != 0; --shards) {
    const std::uint64_t size = shards == 1 ? left : random.below(left + 1);
    sizes.push_back(size);
    left -= size;
  }
  return sizes;
}

/// Fractions of every kind: halves, thin slices, and values next to 0 and 1.
double random_fraction(ps::rng& random) {
  const double thin = std::ldexp(0.5 + random.uniform() / 2, -static_cast<int>(random.below(14)));
  const double f = random.chance(0.5) ? random.uniform() : thin;
  return f > 0 && f < 1 ? (random.chance(0.3) && 1 - f < 1 ? 1 - f : f) : 0.5;
}

}  // namespace

TEST_CASE("order/split: both parts are disjoint and complete, have the right size and an inverse") {
  ps::rng random(1, 0, 0);
  const int rounds = penstock_test::long_tests() ? 40000 : 3000;
  for (int round = 0; round < rounds; ++round) {
    const auto in = input(random_shards(random, random.chance(0.02)  ? 60'000
                                                : random.chance(0.5) ? 1000
                                                                     : 70));
    const double f = random_fraction(random);
    const auto stage = ps::split(f, ps::seed(random()));
    INFO("n " << in.size << ", " << stage.describe());
    std::vector<unsigned> times(static_cast<std::size_t>(in.size));
    const std::uint64_t kept = check_keeps_order(stage.make(in), in, times);
    const std::uint64_t rest = check_keeps_order(stage.complement().make(in), in, times);
    CHECK(each_once(times));
    CHECK(kept + rest == in.size);
    const double exact = f * static_cast<double>(in.size);
    CHECK(static_cast<double>(kept) <= exact + 1e-6);
    CHECK(static_cast<double>(kept) > exact - 1);
    CHECK(epoch_of(stage.complement().complement().make(in)) == epoch_of(stage.make(in)));
  }
}

TEST_CASE("order/split: a fraction is the decimal number written, not the double below it") {
  const auto kept = [](double f, std::uint64_t n) {
    return ps::split(f, ps::seed(3)).make(plain_input(n)).size();
  };
  CHECK(kept(0.7, 10) == 7);
  CHECK(kept(0.29, 100) == 29);
  CHECK(kept(0.9, 1'281'170) == 1'153'053);
  CHECK(kept(1.0 / 3, 9) == 3);
  CHECK(kept(0.5, 1) == 0);
  CHECK(kept(0.9, 1) == 0);
  CHECK(kept(std::nextafter(1.0, 0.0), 5) == 4);
  CHECK(kept(std::numeric_limits<double>::denorm_min(), 1'000'000) == 0);
  for (std::uint64_t percent = 1; percent < 100; ++percent)
    CHECK(kept(static_cast<double>(percent) / 100, 70'000) == percent * 700);
}

TEST_CASE("order/split: works on datasets larger than any machine") {
  ps::rng random(4, 0, 0);
  for (const double f : {0.9, 0.5, 0.1, 0.003, 1e-9, 1 - 1e-9}) {
    for (const std::uint64_t n : {(std::uint64_t{1} << 40) + 12'345, (std::uint64_t{1} << 62) + 7}) {
      const auto in = plain_input(n);
      const auto part = ps::split(f, ps::seed(3)).make(in),
                 rest = ps::split(f, ps::seed(3)).complement().make(in);
      CHECK(part.size() + rest.size() == n);
      const auto a = part.bind(0), b = rest.bind(0);
      bool right = true;
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t p = random.below(n), x = random.below(part.size()), y = random.below(rest.size());
        right = right && part.position_of({0, p}).has_value() != rest.position_of({0, p}).has_value();
        right = right && part.position_of(a(x)) == ps::position{0, x} && !rest.position_of(a(x));
        right = right && rest.position_of(b(y)) == ps::position{0, y} && !part.position_of(b(y));
      }
      INFO("fraction " << f << " of " << n);
      CHECK(right);
      CHECK(a(part.size() - 1).index < n);
      CHECK(b(rest.size() - 1).index < n);
    }
  }
}

TEST_CASE("order/split: every position is as likely as any other, and so are pairs of neighbours") {
  const std::uint64_t n = 640, seeds = 4000;
  for (const double f : {0.5, 0.2, 0.03}) {
    std::vector<double> chosen(n), pairs(1);
    double both = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const auto all = epoch_of(ps::split(f, ps::seed(seed)).make(plain_input(n)));
      for (std::size_t i = 0; i < all.size(); ++i) {
        chosen[static_cast<std::size_t>(all[i])] += 1;
        both += i != 0 && all[i] == all[i - 1] + 1 ? 1 : 0;
      }
    }
    const double kept = std::floor(f * static_cast<double>(n) + 1e-9) / static_cast<double>(n);
    const double mean = kept * static_cast<double>(seeds);
    double chi = 0;
    for (const double c : chosen) chi += (c - mean) * (c - mean) / mean;
    // A sum of 640 squares, each with variance 1 - f; five deviations.
    const double expected = (1 - kept) * static_cast<double>(n);
    INFO("fraction " << f << ", chi " << chi);
    CHECK(chi < expected + 5 * std::sqrt(2 * expected));
    const double wanted = kept * kept * static_cast<double>((n - 1) * seeds);
    INFO("neighbours " << both << " of " << wanted);
    // Below an eighth a cell has several positions and one is chosen, so neighbours are rarer.
    CHECK(both < wanted * 1.1);
    if (f > 0.125) CHECK(both > wanted * 0.9);
  }
}

TEST_CASE("order/split: another seed chooses differently, and a split changes no other random numbers") {
  const auto kept = [](std::uint64_t seed) {
    return epoch_of(ps::split(0.5, ps::seed(seed)).make(plain_input(1000)));
  };
  CHECK(kept(1) != kept(2));
  CHECK(kept(1) == kept(1));
  ps::fingerprint a, b, c, d;
  ps::split(0.5, ps::seed(1)).fingerprint(a);
  ps::split(0.5, ps::seed(1)).complement().fingerprint(b);
  ps::split(0.5, ps::seed(2)).fingerprint(c);
  ps::split(0.25, ps::seed(1)).fingerprint(d);
  CHECK(a.value() != b.value());
  CHECK(a.value() != c.value());
  CHECK(a.value() != d.value());
}

TEST_CASE("order/split: a windowed shuffle after it mixes the samples kept in each window") {
  const auto in = input({40, 40, 40, 40, 40});
  const auto part = ps::split(0.75, ps::seed(2)).make(in);
  const auto shuffled = ps::shuffle(ps::seed(9), ps::window(1)).make(part.output());
  REQUIRE(shuffled.size() == 150);
  const auto order = shuffled.bind(0);
  const auto bound = part.bind(0);
  std::size_t changes = 0;
  for (std::uint64_t i = 1; i < 150; ++i)
    changes += bound(order(i).index).index / 40 != bound(order(i - 1).index).index / 40 ? 1u : 0u;
  CHECK(changes == 4);
}

TEST_CASE("order/split: wrong fractions and endless orders are refused") {
  for (const double f : {0.0, 1.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(error_of([&] { (void)ps::split(f, ps::seed(1)); }),
               penstock_test::contains("is not between 0 and 1"));
  }
  CHECK(error_of([] { (void)ps::split(1.5, ps::seed(1)); }) ==
        "penstock: the fraction 1.5 is not between 0 and 1; write 0.9 to keep nine of ten [stage split]");
  const auto endless = ps::repeat().make({10, nullptr}).output();
  CHECK_THAT(error_of([&] { (void)ps::split(0.5, ps::seed(1)).make(endless); }),
             penstock_test::contains("write split before repeat()"));
}

TEST_CASE("order/split: describes itself") {
  CHECK(ps::split(0.9, ps::seed(7)).describe() == "split(0.9, seed 7)");
  CHECK(ps::split(0.9, ps::seed(7)).complement().describe() == "split(0.9, seed 7).complement()");
}
