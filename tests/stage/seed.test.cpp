// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/seed.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

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
