// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/counters.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("observe/counters: samples, bytes and batches add up, and every value stage has a line") {
  const auto plan = ps::from(first_ints(1000)) | ps::map([](int x) { return x + 1; }) |
                    ps::filter([](int x) { return x % 2 == 0; }) | ps::batch(50);
  for (const unsigned workers : {0u, 2u}) {
    auto run = (plan | ps::workers(workers)).open();
    std::uint64_t batches = 0;
    for (auto&& b : run) batches += b.size() != 0 ? 1 : 0;
    const ps::run_counters counters = run.counters();
    CHECK(counters.samples == 500);
    CHECK(counters.bytes == 500 * sizeof(int));
    CHECK(counters.batches == batches);
    CHECK(counters.workers == workers);
    REQUIRE(counters.stages.size() == 3);
    CHECK(counters.stages[0].name == "from");
    CHECK(counters.stages[1].name == "map");
    CHECK(counters.stages[2].name == "filter");
    CHECK(counters.stages[0].samples == 1000);
    CHECK(counters.seconds > 0);
    CHECK(counters.stall() >= 0);
    CHECK(counters.stall() <= 1);
    CHECK(counters.samples_per_second() > 0);
  }
}

TEST_CASE("observe/counters: the difference since an earlier snapshot") {
  ps::run_counters before, now;
  before.samples = 10;
  before.seconds = 1;
  before.stages = {{"from", 10, 0.5}};
  now = before;
  now.samples = 25;
  before.warnings = 2;
  now.warnings = 5;
  before.storage = {.requests = 1,
                    .bytes = 1,
                    .slow_downs = 1,
                    .retries = 1,
                    .given_up = 1,
                    .throttled = 1,
                    .hedges = 1,
                    .hedges_won = 1};
  now.storage = {.requests = 9,
                 .bytes = 8,
                 .slow_downs = 7,
                 .retries = 6,
                 .given_up = 5,
                 .throttled = 4,
                 .hedges = 3,
                 .hedges_won = 2};
  now.seconds = 4;
  now.workers = 3;
  now.stages = {{"from", 25, 0.4}};
  const ps::run_counters lately = ps::since(now, before);
  CHECK(lately.samples == 15);
  CHECK(lately.warnings == 3);
  CHECK(lately.storage == ps::storage_counters{.requests = 8,
                                               .bytes = 7,
                                               .slow_downs = 6,
                                               .retries = 5,
                                               .given_up = 4,
                                               .throttled = 3,
                                               .hedges = 2,
                                               .hedges_won = 1});
  CHECK(lately.seconds == 3);
  CHECK(lately.workers == 3);
  CHECK(lately.stages[0].samples == 15);
  CHECK(lately.stages[0].busy_seconds == 0);  // it is an estimate, and never negative
}

TEST_CASE("observe/counters: snapshots in reverse order give zero") {
  ps::run_counters earlier, later;
  later.samples = later.bytes = later.batches = later.skipped = later.replaced = later.warnings = 7;
  later.seconds = later.stall_seconds = later.worker_busy_seconds = 2;
  later.waiting_for_room = later.waiting_for_room_in_stall = later.waiting_for_input = 1;
  later.stages = {{"from", 7, 0.5}};
  earlier.stages = {{"from", 0, 0}};
  const ps::run_counters nothing = ps::since(earlier, later);
  CHECK(nothing.samples + nothing.bytes + nothing.batches + nothing.skipped + nothing.replaced +
            nothing.warnings ==
        0);
  CHECK(nothing.seconds == 0);
  CHECK(nothing.stall_seconds == 0);
  CHECK(nothing.worker_busy_seconds == 0);
  CHECK(nothing.waiting_for_room == 0);
  CHECK(nothing.waiting_for_room_in_stall == 0);
  CHECK(nothing.waiting_for_input == 0);
  CHECK(nothing.stages[0].samples == 0);
  CHECK(nothing.samples_per_second() == 0);
}

TEST_CASE("observe/counters: a run that has done nothing divides by nothing") {
  const ps::run_counters none;
  CHECK(none.stall() == 0);
  CHECK(none.samples_per_second() == 0);
  CHECK(none.bytes_per_second() == 0);
}
