// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/tuning/machine.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace machine_test {

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/machine: there is a processor, and ranks share them") {
  const unsigned all = ps::usable_processors();
  CHECK(all >= 1);
  CHECK(all <= 65536);
  CHECK(ps::default_workers(1) == (all > 2 ? all - 1 : all));
  CHECK(ps::default_workers(all) == 1);
  CHECK(ps::processors_of_rank(1) == all);
  CHECK(ps::processors_of_rank(0) == all);
  CHECK(ps::processors_of_rank(10 * all) == 1);
  CHECK(ps::default_workers(10 * all) == 1);
  CHECK(ps::default_workers(0) == ps::default_workers(1));
}

TEST_CASE("run/machine: the processors of this thread are among those allowed") {
  const ps::processor_set allowed = ps::allowed_processors();
#if defined(__linux__)
  CHECK(allowed.size() >= ps::usable_processors());
#else
  CHECK(allowed.empty());
#endif
}

}  // namespace machine_test
