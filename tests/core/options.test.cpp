// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/options.hpp>

#include "support/catch.hpp"

namespace ps = penstock;

TEST_CASE("core/options: unset options are left to the run") {
  const ps::run_options options;
  CHECK(!options.workers);
  CHECK(!options.memory);
  CHECK(!options.depth);
  CHECK(!options.seed);
  CHECK_FALSE(options.ahead);
  CHECK(options.watchdog_ms > 0);
}
