// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/tuning/block_rotation.hpp>

#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace block_rotation_test {

/// A consumer that waits for each block, which takes so long with few blocks and with many.
struct consumer {
  ps::block_rotation& rotation;
  std::uint64_t with_few, with_most, own = 0;
  std::uint64_t now = 1000, waited = 0;

  /// Takes blocks; returns with how many of them few were open.
  std::size_t take(std::size_t blocks) {
    std::size_t few = 0;
    for (std::size_t i = 0; i < blocks; ++i) {
      const bool is_few = rotation.open() < 5;
      few += is_few ? 1 : 0;
      const std::uint64_t wait = is_few ? with_few : with_most;
      waited += wait;
      now += wait + own;
      rotation.took(waited, now);
    }
    return few;
  }
};

TEST_CASE("run/block_rotation: all blocks are open until it begins, and where few are as many") {
  ps::block_rotation rotation(5);
  consumer one{rotation, 1, 100};
  CHECK(one.take(5000) == 0);
  CHECK_FALSE(rotation.looks());
  rotation.begin(2, 0);  // 2 workers and no grains to share: 6 would be needed
  CHECK_FALSE(rotation.looks());
  CHECK(one.take(5000) == 0);
}

TEST_CASE("run/block_rotation: few are as many as keep all workers at work") {
  const auto open_with = [](std::size_t workers, std::uint64_t grains) {
    ps::block_rotation rotation(100);
    rotation.begin(workers, grains);
    std::uint64_t now = 0, waited = 0;
    std::size_t least = 100;
    for (int i = 0; i < 1000; ++i) {
      now += rotation.open();
      rotation.took(waited = now, now);
      least = std::min(least, rotation.open());
    }
    return least;
  };
  CHECK(open_with(2, 64) == 2);
  CHECK(open_with(64, 64) == 4);
  CHECK(open_with(16, 8) == 6);
  CHECK(open_with(16, 1) == 34);
}

TEST_CASE("run/block_rotation: a consumer that waits gets the number with which it waits less") {
  ps::block_rotation rotation(5);
  rotation.begin(2, 64);
  SECTION("few") {
    consumer one{rotation, 70, 100};
    one.take(1000);
    CHECK(rotation.open() == 2);
    CHECK(one.take(100'000) > 99'000);  // it asks again, seldom
    one.with_few = 200;                 // until that changes
    one.take(140'000);
    CHECK(rotation.open() == 5);
    CHECK(one.take(100'000) < 1000);
  }
  SECTION("all, if few are not much better") {
    consumer one{rotation, 90, 100};
    CHECK(one.take(100'000) < 1000);
    CHECK(rotation.open() == 5);
  }
}

TEST_CASE("run/block_rotation: a consumer that hardly waits never has few") {
  ps::block_rotation rotation(5);
  rotation.begin(2, 64);
  consumer one{rotation, 1, 5, 100};
  CHECK(one.take(10'000) == 0);
}

TEST_CASE("run/block_rotation: a pause of the consumer decides nothing, and it is asked again") {
  const auto paused_in = [](std::size_t block) {
    ps::block_rotation rotation(5);
    rotation.begin(2, 64);
    consumer one{rotation, 200, 100};  // few are slower
    one.take(block);
    one.now += 1'000'000;  // another epoch begins
    one.take(1000 - block);
    CHECK(rotation.open() == 5);
    one.with_few = 70;  // few are faster: known before long
    one.take(1500);
    CHECK(rotation.open() == 2);
  };
  paused_in(256 + 40);       // while all are tried
  paused_in(256 + 72 + 40);  // while few are
}

TEST_CASE("run/block_rotation: is asked again after 1024 blocks, the first time too") {
  ps::block_rotation rotation(5);
  rotation.begin(2, 64);
  consumer one{rotation, 100, 100};
  CHECK(one.take(256 + 144) == 72);
  CHECK(one.take(1024) == 0);
  CHECK(one.take(144) == 72);
  CHECK(one.take(2048) == 0);
}

/// Large batches of several grains, and how many rows have been made.
auto large_batches(std::atomic<std::size_t>& made) {
  return ps::from(std::vector<std::uint32_t>(600 * 256)) | ps::map([&made](std::uint32_t n) {
           ++made;
           return std::vector<std::uint8_t>(10'000, static_cast<std::uint8_t>(n));
         }) |
         ps::batch(256);
}

TEST_CASE("run/block_rotation: a depth set by hand stands, also while few blocks are tried") {
  const penstock_test::deadline guard("a depth set by hand");
  std::atomic<std::size_t> made{0};
  auto run = (large_batches(made) | ps::workers(2)).open();
  const std::size_t maximum = run.counters().depth;
  REQUIRE(maximum >= 5);
  const std::size_t wanted = maximum - 1;
  std::size_t taken = 0;
  for (auto&& b : run.epoch(0)) {
    if (++taken < 340) continue;  // the consumer waited, so that few are being tried
    if (taken == 340) run.adjust({.depth = static_cast<std::int64_t>(wanted)});
    if (taken != 344) continue;
    const std::size_t ahead = std::min<std::size_t>(600, taken + wanted - 1) * 256;
    for (int i = 0; i < 2000 && made < ahead; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(made >= ahead);
    CHECK(b.size() == 256);
    break;
  }
}

TEST_CASE("run/block_rotation: a run of large batches delivers the same, whatever is open") {
  const penstock_test::deadline guard("large batches");
  constexpr std::size_t row = 10'000, batch = 256, rows = 600 * batch;  // in 4 grains, so that 3 blocks do
  std::vector<std::uint32_t> numbers(rows);
  for (std::size_t i = 0; i < rows; ++i) numbers[i] = static_cast<std::uint32_t>(i * 7);
  const auto plan =
      ps::from(numbers) |
      ps::map([](std::uint32_t n) { return std::vector<std::uint8_t>(row, static_cast<std::uint8_t>(n)); }) |
      ps::batch(batch);
  auto run = (plan | ps::workers(2)).open();
  std::size_t seen = 0, wrong = 0;
  for (auto&& b : run.epoch(0)) {
    const std::uint8_t* const bytes = b.values().data();
    for (std::size_t i = 0; i < batch * row; i += row / 2)
      wrong += bytes[i] != static_cast<std::uint8_t>(numbers[seen + i / row]) ? 1 : 0;
    seen += b.size();
  }
  CHECK(seen == rows);
  CHECK(wrong == 0);
}

}  // namespace block_rotation_test
