// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/split_by_key.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
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

static_assert(ps::order_stage<ps::split_by_key_stage>, "split_by_key is an order stage");

namespace {

ps::sample_list<std::string> patients(ps::rng& random, std::uint64_t n, std::uint64_t people) {
  std::vector<std::string> all;
  while (all.size() < n) all.push_back("patient-" + std::to_string(random.below(people)));
  return ps::sample_list(all);
}

}  // namespace

TEST_CASE("order/split_by_key: the hash never changes") {
  const auto word = [](std::uint64_t h, std::uint64_t w) { return ps::mix64(h ^ ps::mix64(w)); };
  const std::uint64_t begin = ps::mix64(7);
  CHECK(ps::key_hash(std::int64_t{-2}, 7) == word(begin, ~std::uint64_t{1}));
  CHECK(ps::key_hash(5u, 7) == word(begin, 5));
  CHECK(ps::key_hash(1.0, 7) == word(begin, 0x3ff0000000000000u));
  CHECK(ps::key_hash(-0.0, 7) == ps::key_hash(0.0, 7));
  CHECK(ps::key_hash(std::string_view(""), 7) == word(begin, 0));
  CHECK(ps::key_hash(std::string_view("abcdefghij"), 7) ==
        word(word(word(begin, 10), 0x6867666564636261u), 0x6a69u));
  // Written here so that it does not change: datasets stay split for good.
  CHECK(ps::key_hash(std::string_view("patient-17"), 7) == 0x131aa4c404e2ea00u);
}

TEST_CASE("order/split_by_key: groups stay together, both sides are disjoint and complete") {
  ps::rng random(1, 0, 0);
  for (int round = 0; round < 500; ++round) {
    const auto in = input({random.below(150), random.below(40), 0, random.below(150)});
    const auto who = patients(random, in.size, 1 + random.below(40));
    const auto stage = ps::split_by_key(who, random.uniform(0.01, 0.99), ps::seed(random()));
    std::vector<unsigned> times(static_cast<std::size_t>(in.size));
    CHECK(check_keeps_order(stage.make(in), in, times) == stage.size());
    CHECK(check_keeps_order(stage.complement().make(in), in, times) == stage.complement().size());
    CHECK(each_once(times));
    std::map<std::string_view, bool> side;
    bool together = true;
    for (const std::uint64_t p : epoch_of(stage.make(in))) side[who[p]] = true;
    for (const std::uint64_t p : epoch_of(stage.complement().make(in)))
      together = together && !side.count(who[p]);
    CHECK(together);
  }
}

TEST_CASE("order/split_by_key: adding samples, in any order, moves no group to the other side") {
  ps::rng random(3, 0, 0);
  const auto few = patients(random, 300, 50);
  std::vector<std::string> all;
  for (int i = 0; i < 70; ++i) all.push_back("new-" + std::to_string(i));
  for (std::uint64_t i = few.size(); i-- != 0;) all.emplace_back(few[i]);
  const ps::sample_list many(all);
  const auto before = ps::split_by_key(few, 0.6, ps::seed(9)).make(plain_input(300));
  const auto after = ps::split_by_key(many, 0.6, ps::seed(9)).make(plain_input(370));
  const auto more = ps::split_by_key(many, 0.8, ps::seed(9)).make(plain_input(370));
  for (std::uint64_t i = 0; i < 300; ++i) {
    CHECK(before.position_of({0, i}).has_value() == after.position_of({0, 369 - i}).has_value());
    if (after.position_of({0, i})) CHECK(more.position_of({0, i}).has_value());
  }
}

TEST_CASE("order/split_by_key: a fraction of the groups is kept") {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < 20'000; ++i) all.push_back(i);
  const ps::sample_list each(all);
  for (const double f : {0.1, 0.5, 0.9}) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const double kept = static_cast<double>(ps::split_by_key(each, f, ps::seed(seed)).size());
      CHECK(std::abs(kept - f * 20'000) < 5 * std::sqrt(20'000 * f * (1 - f)));
    }
  }
}

TEST_CASE("order/split_by_key: wrong fractions and other datasets are refused; it describes itself") {
  const ps::sample_list values(std::vector<int>{1, 2, 3});
  CHECK_THAT(error_of([&] { (void)ps::split_by_key(values, 1, ps::seed(0)); }),
             penstock_test::contains("is not between 0 and 1; write 0.9"));
  CHECK_FALSE(error_of([&] {
                (void)ps::split_by_key(values, std::numeric_limits<double>::quiet_NaN(), ps::seed(0));
              }).empty());
  CHECK_FALSE(
      error_of([&] { (void)ps::split_by_key(values, 0.5, ps::seed(0)).make(plain_input(4)); }).empty());
  const auto stage = ps::split_by_key(values, 0.5, ps::seed(3));
  CHECK(stage.complement().describe() == "split_by_key(a list of 3, 0.5, seed 3).complement()");
  ps::fingerprint a, b;
  stage.fingerprint(a);
  stage.complement().fingerprint(b);
  CHECK(a.value() != b.value());
}
