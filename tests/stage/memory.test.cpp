// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/memory.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/memory: batches in flight stay below the bytes given, and large ones still flow") {
  const std::vector<std::vector<std::byte>> samples(200, std::vector<std::byte>(4096));
  const auto plan = ps::from(samples) | ps::shuffle(1) | ps::batch(8) | ps::workers(2) | ps::prefetch(20);
  for (const std::uint64_t limit : {400'000u, 1'000'000u}) {
    auto run = (plan | ps::memory(limit)).open();
    std::size_t seen = 0;
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) {
        seen += b.size();
        CHECK(run.counters().bytes_held <= limit);
      }
    CHECK(seen == 600);
  }
  std::size_t seen = 0;
  for (auto&& b : plan | ps::memory(1)) seen += b.size();
  CHECK(seen == 200);
}
