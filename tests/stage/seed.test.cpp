// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/seed.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/seed: it changes the numbers of random stages and nothing else") {
  const auto draw = ps::map([](int x, ps::rng& r) { return x * 100 + static_cast<int>(r.below(100)); });
  const auto plan = ps::from(first_ints(40)) | ps::shuffle(ps::seed(2)) | draw | ps::batch(8);
  const auto first = values_of(plan | ps::seed(1)), second = values_of(plan | ps::seed(2));
  CHECK(first != second);
  CHECK(values_of(plan | ps::seed(1), 0) == first);
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i] / 100 == second[i] / 100);
}

TEST_CASE("stage/seed: without it the seed of the shuffle counts") {
  const auto draw = ps::map([](int, ps::rng& r) { return static_cast<int>(r.below(1'000'000)); });
  const auto source = ps::from(std::vector<int>(20));
  const auto of = [&](std::uint64_t seed) {
    return values_of(source | ps::shuffle(ps::seed(seed)) | draw | ps::batch(8));
  };
  CHECK(of(5) == values_of(source | ps::shuffle(ps::seed(5)) | draw | ps::batch(8) | ps::seed(5)));
  CHECK(of(5) != of(6));
}

TEST_CASE("stage/seed: a shuffle without a seed has the plan's, wherever it stands") {
  const auto source = ps::from(first_ints(40));
  const auto named = source | ps::shuffle(ps::seed(7)) | ps::batch(8);
  CHECK(values_of(source | ps::shuffle | ps::batch(8) | ps::seed(7)) == values_of(named));
  CHECK(values_of(source | ps::seed(7) | ps::shuffle | ps::batch(8)) == values_of(named));
  CHECK(values_of(source | ps::shuffle | ps::batch(8)) ==
        values_of(source | ps::shuffle(ps::seed(0)) | ps::batch(8)));
  CHECK(values_of(source | ps::shuffle | ps::batch(8) | ps::seed(8)) != values_of(named));
  // A seed that another shuffle names is the plan's, too.
  CHECK(
      values_of(source | ps::shuffle(ps::seed(7)) | ps::take(20) | ps::shuffle | ps::batch(8)) ==
      values_of(source | ps::shuffle(ps::seed(7)) | ps::take(20) | ps::shuffle(ps::seed(7)) | ps::batch(8)));
}

TEST_CASE("stage/seed: a state of a shuffle without a seed fits the plan that names it, and no other seed") {
  const auto source = ps::from(first_ints(40));
  const auto plan = source | ps::shuffle | ps::batch(8);
  auto run = (plan | ps::seed(7)).open();
  auto batches = run.epoch(0);
  auto next = batches.begin();
  ++next;
  const ps::state state = run.state();
  CHECK((source | ps::shuffle(ps::seed(7)) | ps::batch(8)).open(state).state() == state);
  CHECK_THROWS_AS((plan | ps::seed(8)).open(state), ps::error);
}

TEST_CASE("stage/seed: in a source that joins plans each has its own") {
  const auto ints = ps::from(first_ints(40));
  const auto joined = [](const auto& plan) { return values_of(ps::concat(plan, plan) | ps::batch(8)); };
  CHECK(joined(ints | ps::shuffle | ps::seed(7)) == joined(ints | ps::shuffle(ps::seed(7))));
  CHECK(values_of(ps::concat(ints | ps::shuffle, ints) | ps::batch(8) | ps::seed(7)) ==
        values_of(ps::concat(ints | ps::shuffle(ps::seed(0)), ints) | ps::batch(8)));
}
