// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/pin_and_copy.hpp>

#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <chrono>
#include <cstring>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/pin_and_copy: the host uses batches where they are") {
  for (auto&& b : (ps::from(first_ints(20)) | ps::batch(4) | ps::pin_and_copy).epoch(0))
    CHECK(b.device_data() == b.values().data());
}

TEST_CASE("stage/pin_and_copy: a device gets every batch, also after a filter and the last, shorter one") {
  const ps::simulated accelerator(ps::simulated::options{std::chrono::microseconds(1), 1e9});
  const auto check = [&](const auto& plan) {
    std::size_t seen = 0;
    for (auto&& b : plan) {
      REQUIRE(b.device_data() != static_cast<const void*>(b.values().data()));
      REQUIRE(std::memcmp(b.device_data(), b.values().data(), b.size() * sizeof(int)) == 0);
      accelerator.step();
      seen += b.size();
    }
    return seen;
  };
  const auto source = ps::from(first_ints(30));
  for (const unsigned workers : {0u, 1u, 3u}) {
    CHECK(check(source | ps::batch(4) | ps::pin_and_copy(accelerator) | ps::workers(workers)) == 30);
    const auto odd = ps::filter([](int x) { return x % 2 != 0; });
    CHECK(check(source | odd | ps::batch(4) | ps::pin_and_copy(accelerator) | ps::workers(workers)) == 15);
  }
  CHECK(accelerator.steps() == 3 * (8 + 4));
}
