// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/machine.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/machine: there is a processor, and ranks share them") {
  const unsigned all = ps::usable_processors();
  CHECK(all >= 1);
  CHECK(all <= 65536);
  CHECK(ps::default_workers(1) == (all > 1 ? all - 1 : 1));
  CHECK(ps::default_workers(all) == 1);
  CHECK(ps::default_workers(10 * all) == 1);
  CHECK(ps::default_workers(0) == ps::default_workers(1));
}
