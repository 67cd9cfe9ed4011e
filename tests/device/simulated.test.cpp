// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/device/simulated.hpp>

#include "support/catch.hpp"

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;

static_assert(ps::device<ps::simulated> && ps::simulated::session::copies, "a simulated accelerator copies");

TEST_CASE("device/simulated: a copy has the bytes of the original") {
  auto session = ps::simulated{}.connect();
  ps::simulated::session::transfer transfer;
  std::array<std::byte, 100> first{};
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::byte>(i * 7);
  const std::string second = "flow";
  const std::vector<ps::bytes_view> columns{first, ps::bytes_view{}, ps::bytes_of(second)};
  session.start(transfer, columns);
  session.wait(transfer);
  CHECK(session.data(transfer, 0) != static_cast<const void*>(first.data()));
  CHECK(std::memcmp(session.data(transfer, 0), first.data(), first.size()) == 0);
  CHECK(std::memcmp(session.data(transfer, 2), "flow", 4) == 0);

  // another transfer on one object, as when a slot of the ring is reused
  const std::vector<ps::bytes_view> fewer{ps::bytes_of(second)};
  session.start(transfer, fewer);
  session.wait(transfer);
  CHECK(std::memcmp(session.data(transfer, 0), "flow", 4) == 0);
}

TEST_CASE("device/simulated: copies take the time of the link, one after another") {
  ps::simulated::options options;
  options.bytes_per_second = 1'000'000;
  auto session = ps::simulated(options).connect();
  const std::vector<std::byte> data(5'000);
  const std::vector<ps::bytes_view> columns{data};
  ps::simulated::session::transfer first, second;
  const auto begin = std::chrono::steady_clock::now();
  session.start(first, columns);
  session.start(second, columns);
  CHECK(second.done - first.done >= 5ms);
  session.wait(second);
  CHECK(std::chrono::steady_clock::now() - begin >= 10ms);
}

TEST_CASE("device/simulated: steps take the time given and are counted") {
  ps::simulated::options options;
  options.step = 2ms;
  const ps::simulated accelerator(options);
  CHECK(accelerator.steps() == 0);
  CHECK(accelerator.stall() == 0);
  const auto begin = std::chrono::steady_clock::now();
  accelerator.step();
  CHECK(accelerator.steps() == 1);
  CHECK(accelerator.stall() == 0);
  for (int i = 0; i < 4; ++i) accelerator.step();
  CHECK(std::chrono::steady_clock::now() - begin >= 10ms);
  CHECK(accelerator.steps() == 5);
  CHECK(accelerator.stall() >= 0);
  CHECK(accelerator.stall() <= 1);
}

TEST_CASE("device/simulated: waiting between steps is stall") {
  ps::simulated::options options;
  options.step = 1ms;
  const ps::simulated accelerator(options);
  accelerator.step();
  const double before = accelerator.stall();
  std::this_thread::sleep_for(6ms);
  accelerator.step();
  CHECK(accelerator.stall() > before);
  CHECK(accelerator.stall() >= 0.7);  // two of at least eight milliseconds were work
  CHECK(accelerator.stall() <= 1);
}

TEST_CASE("device/simulated: copies of one accelerator share its account") {
  const ps::simulated accelerator;
  const ps::simulated same = accelerator;
  same.step();
  CHECK(accelerator.steps() == 1);
  CHECK(ps::simulated{}.steps() == 0);
  CHECK_THAT(accelerator.describe(), penstock_test::contains("1000 us"));
}

TEST_CASE("device/simulated: batches arrive with the host's values") {
  ps::simulated::options options;
  options.step = 100us;
  const ps::simulated accelerator(options);
  std::vector<int> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const unsigned threads : {0u, 2u}) {
    const auto loader =
        ps::from(numbers) | ps::workers(threads) | ps::batch(7) | ps::pin_and_copy(accelerator);
    std::vector<int> arrived;
    for (auto&& b : loader) {
      accelerator.step();
      const auto values = b.values();
      REQUIRE(b.device_data() != static_cast<const void*>(values.data()));
      std::vector<int> copied(values.size());
      std::memcpy(copied.data(), b.device_data(), values.size_bytes());
      arrived.insert(arrived.end(), copied.begin(), copied.end());
    }
    CHECK(arrived == numbers);
  }
  CHECK(accelerator.steps() == 30);
}
