// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/front.hpp>

#include <penstock/run/engine/workers/ring.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

namespace serial_front_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct counting_front {
  int next_value = 0, size = 0;
  int fail_at = -1;
  void rewind(std::uint64_t epoch) { next_value = static_cast<int>(epoch) * 1000; }
  bool next(int& item) {
    if (next_value % 1000 == fail_at) throw std::runtime_error("broken");
    if (next_value % 1000 == size) return false;
    item = next_value++;
    return true;
  }
};

}  // namespace

TEST_CASE("run/serial_front: chunks take samples in order of their numbers, whichever comes first") {
  for (int round = 0; round < 50; ++round) {
    ps::ring own(4, 1, 0);
    const ps::stop_view ring = own.stop_state();
    ps::serial_front<counting_front, int> front(counting_front{0, 10}, 4);
    std::vector<std::vector<int>> got(6);
    std::vector<std::jthread> threads;
    for (std::uint64_t s = 0; s < 4; ++s)
      threads.emplace_back([&, s] {
        for (std::uint64_t mine = s; mine < 6; mine += 4) {
          std::uint64_t count = 0;
          bool ended = false;
          const auto* items = front.pull(
              mine, 0, 3, false, ring, count, ended, [](std::uint64_t) {}, [](std::uint64_t) {});
          if (items != nullptr)
            got[mine].assign(items->begin(), items->begin() + static_cast<std::ptrdiff_t>(count));
        }
      });
    threads.clear();
    REQUIRE(got == std::vector<std::vector<int>>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}, {}, {}});
  }
}

TEST_CASE("run/serial_front: a failing source ends it after earlier samples, another epoch restarts it") {
  ps::ring own(2, 1, 0);
  const ps::stop_view ring = own.stop_state();
  ps::serial_front<counting_front, int> front(counting_front{0, 10, 4}, 2);
  std::uint64_t count = 0, failed_after = 99;
  bool ended = false;
  const auto failed = [&](std::uint64_t n) { failed_after = n; };
  REQUIRE(front.pull(0, 0, 3, false, ring, count, ended, failed, [](std::uint64_t) {}) != nullptr);
  CHECK(count == 3);
  CHECK(front.pull(1, 0, 3, false, ring, count, ended, failed, [](std::uint64_t) {}) != nullptr);
  CHECK(failed_after == 1);
  CHECK(ended);
  const auto* items = front.pull(2, 1, 3, false, ring, count, ended, failed, [](std::uint64_t) {});
  CHECK((*items)[0] == 1000);
}

TEST_CASE("run/serial_front: stop ends the wait for a turn") {
  ps::ring own(2, 1, 0);
  const ps::stop_view ring = own.stop_state();
  ps::serial_front<counting_front, int> front(counting_front{0, 10}, 2);
  const std::vector<int>* got = nullptr;
  std::jthread waiting([&] {
    std::uint64_t count = 0;
    bool ended = false;
    got = front.pull(
        1, 0, 3, false, ring, count, ended, [](std::uint64_t) {}, [](std::uint64_t) {});
  });
  own.stop();
  front.stop();
  waiting.join();
  CHECK(got == nullptr);
}

}  // namespace serial_front_test
