// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/watchdog.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <chrono>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/watchdog: an option of the run, in milliseconds; 0 turns it off") {
  using namespace std::chrono_literals;
  const auto plan = ps::from(first_ints(20)) | ps::batch(4);
  CHECK(plan.open().options().watchdog_ms == 30'000);
  CHECK((plan | ps::watchdog(250ms)).open().options().watchdog_ms == 250);
  CHECK(values_of(plan | ps::watchdog(0ms)) == values_of(plan));
}
