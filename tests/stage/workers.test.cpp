// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/workers.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/workers: it sets the number of threads, anywhere in the plan, without changing a byte") {
  const auto add = ps::map([](int x) { return x + 1; });
  const auto alone = values_of(ps::from(first_ints(500)) | ps::shuffle(2) | add | ps::batch(16), 0);
  for (const unsigned count : {1u, 2u, 7u}) {
    auto run = (ps::from(first_ints(500)) | ps::workers(count) | ps::shuffle(2) | add | ps::batch(16)).open();
    std::vector<int> seen;
    for (auto&& b : run) seen.insert(seen.end(), b.begin(), b.end());
    CHECK(seen == alone);
    CHECK(run.counters().workers == count);
  }
}

TEST_CASE("stage/workers: without it there is at least one") {
  auto run = (ps::from(first_ints(10)) | ps::batch(2)).open();
  CHECK(run.counters().workers >= 1);
}
