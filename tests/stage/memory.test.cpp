// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/memory.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/memory: batches in flight stay below the bytes given, and large ones still flow") {
  const std::vector<std::vector<std::byte>> samples(200, std::vector<std::byte>(4096));
  const auto plan =
      ps::from(samples) | ps::shuffle(ps::seed(1)) | ps::batch(8) | ps::workers(2) | ps::prefetch(20);
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
  for (auto&& b : (plan | ps::memory(1)).epoch(0)) seen += b.size();
  CHECK(seen == 200);
}

TEST_CASE("stage/memory: the bound holds from the first batch on, though sizes are known late and differ") {
  const auto vectors = [](std::uint64_t x) {
    return std::vector<float>(static_cast<std::size_t>(2000 + x % 7 * 100), 1.0f);
  };
  const auto equal = [](std::uint64_t) { return std::vector<float>(2000, 1.0f); };
  const auto check = [](const auto& plan, std::uint64_t limit) {
    for (const unsigned workers : {0u, 1u, 3u}) {
      auto run = (plan | ps::memory(limit) | ps::prefetch(15) | ps::workers(workers)).open();
      std::uint64_t seen = 0, maximum = 0;
      for (auto epoch : run.epochs(2))
        for (auto&& b : epoch) {
          seen += b.valid_size();
          maximum = std::max(maximum, run.counters().bytes_held);
        }
      CHECK(seen == 1280);
      CHECK(maximum <= limit);
    }
  };
  check(ps::generated(640, equal) | ps::batch(8), 1'000'000);
  check(ps::generated(640, vectors) | ps::batch(8, ps::ragged), 1'500'000);
  check(ps::generated(640, vectors) | ps::batch(8, ps::pad_to_longest), 1'500'000);
  check(ps::generated(640, equal) | ps::filter([](const std::vector<float>& v) { return !v.empty(); }) |
            ps::batch(8),
        2'000'000);
}
