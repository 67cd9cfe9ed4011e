// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/worker_counts.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/worker_counts: workers are added up under the names of source and value stages") {
  const auto plan = ps::from(numbers(4)) | ps::map([](int x) { return x; }) | ps::batch(2);
  std::vector<ps::worker_counts<2>> workers(2);
  workers[0].add(10, 1'000'000'000);
  workers[1].add(30, 500'000'000);
  workers[0].stage_ns[1] = 400;
  workers[0].stage_timed[1] = 4;
  ps::run_counters all;
  ps::add_worker_counts(all, workers, plan);
  REQUIRE(all.stages.size() == 2);
  CHECK(all.stages[0].name == "from");
  CHECK(all.stages[1].name == "map");
  CHECK(all.stages[1].samples == 40);
  CHECK(all.stages[1].busy_seconds == Approx(40 * 100e-9));
  CHECK(all.worker_busy_seconds == Approx(1.5));
}
