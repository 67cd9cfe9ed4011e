// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/tuning/block_budget.hpp>

#include "support/catch.hpp"

#include <cstdint>

namespace block_budget_test {

namespace ps = penstock;

TEST_CASE("run/block_budget: one batch while costs are unknown, then 50 ms, by at most four times more") {
  ps::block_budget budget(256, true);
  CHECK(budget.batches() == 1);
  CHECK(budget.grain(64, 4, 16'384) == 16);  // all workers have a part of the first batch
  budget.took(64'000'000, 64, 1);            // 1 ms each
  CHECK(budget.batches() == 1);
  CHECK(budget.grain(64, 4, 16'384) == 16);
  CHECK(budget.is_slow());

  ps::block_budget quick(256, true);
  for (const std::size_t next : {4u, 16u, 64u, 256u, 256u}) {
    const std::size_t now = quick.batches();
    quick.took(now * 64, now * 64, now);  // 1 ns each
    CHECK(quick.batches() == next);
  }
  quick.took(64, 64, 1);  // the end of an epoch
  CHECK(quick.batches() == 256);
  CHECK(quick.grain(16'384, 4, 16'384) == 16'384);  // one worker takes all
  CHECK_FALSE(quick.is_slow());
  quick.took(16'384 * 100'000, 16'384, 256);  // 0.1 ms each, suddenly
  CHECK(quick.batches() == 7);
  CHECK(quick.grain(448, 4, 16'384) == 112);
  quick.took(448 * 10'000, 448, 7);  // a moment of 10 us does not change much
  CHECK(quick.batches() == 8);
}

TEST_CASE("run/block_budget: a slow and a very slow sample") {
  ps::block_budget budget(256, true);
  budget.took(20'000'000, 8, 1);
  CHECK(budget.batches() == 2);
  CHECK(budget.grain(8, 8, 8) == 1);
  budget.took(~std::uint64_t{0}, 1, 1);
  CHECK(budget.batches() == 1);
  budget.took(0, 0, 1);
  CHECK(budget.batches() == 1);
}

TEST_CASE("run/block_budget: where samples are only copied, bytes decide") {
  ps::block_budget budget(256, false);
  CHECK(budget.batches() == 256);
  CHECK(budget.grain(16'384, 4, 16'384) == 16'384);
  CHECK(budget.grain(16'384, 4, 1024) == 4096);
  budget.took(64'000'000, 64, 1);
  CHECK(budget.batches() == 256);
  CHECK_FALSE(budget.is_slow());
}

}  // namespace block_budget_test
