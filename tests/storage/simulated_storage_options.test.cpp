// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/simulated_storage_options.hpp>

#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"

#include <chrono>
#include <limits>

namespace ps = penstock;
using namespace std::chrono_literals;

TEST_CASE("storage/simulated_storage_options: options out of range are refused") {
  const auto refuses = [](ps::simulated_storage_options options, const char* why) {
    CHECK_THROWS_WITH(ps::simulated_storage(ps::memory_files(), options), penstock_test::contains(why));
  };
  refuses({.latency = -1us}, "not -1 us");
  refuses({.jitter = 2h}, "an hour");
  refuses({.size_latency = -1us}, "an hour");
  refuses({.bytes_per_second = -5}, "bytes per second");
  refuses({.bytes_per_second = std::numeric_limits<double>::quiet_NaN()}, "bytes per second");
  refuses({.failing = 1.5}, "from 0 to 1");
  refuses({.failing = std::numeric_limits<double>::quiet_NaN()}, "from 0 to 1");
  refuses({.stall = -1us}, "not -1 us");
  refuses({.asks_to_wait = 2h}, "an hour");
  refuses({.faults = {{.object = 0, .begin = 5, .end = 5}}}, "is empty");
}
