// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/workers/ring.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ring_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// Work on a block: grains add up in a plain array, so that the thread sanitizer sees whether the protocol
/// orders them.
struct adding {
  std::vector<std::vector<std::uint64_t>>& blocks;
  std::atomic<bool>* hold = nullptr;
  void evaluate(std::uint64_t s, std::uint64_t grain) noexcept {
    if (hold != nullptr) hold->wait(true);
    if ((s * 7 + grain) % 11 == 0) std::this_thread::yield();
    blocks[s % blocks.size()][grain] = s * 100 + grain;
  }
  void finish(std::uint64_t s) noexcept { blocks[s % blocks.size()].back() = s; }
  void waiting(bool) noexcept {}
  void rest() noexcept {}
};

/// A delivery by a list under a lock.
class locked_list {
 public:
  static inline std::atomic<int> alive = 0;
  locked_list(std::size_t, unsigned) { ++alive; }
  ~locked_list() { --alive; }
  void put(std::uint64_t s) noexcept {
    const std::lock_guard guard(lock_);
    finished_.push_back(s);
    changed_.notify_all();
  }
  [[nodiscard]] bool is_ready(std::uint64_t s) noexcept {
    const std::lock_guard guard(lock_);
    return has(s);
  }
  [[nodiscard]] bool wait_ready(std::uint64_t s) noexcept {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return stopped_ || has(s); });
    return !stopped_;
  }
  void stop() noexcept {
    const std::lock_guard guard(lock_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  [[nodiscard]] bool has(std::uint64_t s) const {
    return std::find(finished_.begin(), finished_.end(), s) != finished_.end();
  }
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> finished_;
  bool stopped_ = false;
};

void run_blocks(std::size_t ring_blocks, std::uint64_t grains, unsigned workers, unsigned spins,
                std::uint64_t count, ps::block_delivery::maker delivery = nullptr) {
  ps::ring ring(ring_blocks, grains, spins, delivery);
  std::vector<std::vector<std::uint64_t>> blocks(ring_blocks, std::vector<std::uint64_t>(grains + 1));
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < workers; ++i)
    threads.emplace_back([&] {
      adding work{blocks};
      ring.serve(work);
    });
  std::uint64_t opened = 0;
  for (std::uint64_t s = 0; s < count; ++s) {
    while (opened < count && opened < s + ring_blocks) ring.open(opened++);
    REQUIRE(ring.wait_ready(s));
    REQUIRE(blocks[s % ring_blocks].back() == s);
    for (std::uint64_t grain = 0; grain < grains; ++grain)
      REQUIRE(blocks[s % ring_blocks][grain] == s * 100 + grain);
  }
  ring.stop();
}

}  // namespace

TEST_CASE("run/ring: every block is processed once and delivered in order, whatever its size") {
  for (const std::size_t blocks : {1u, 2u, 5u})
    for (const std::uint64_t grains : {1u, 3u, 8u})
      for (const unsigned workers : {1u, 2u, 7u})
        for (const auto delivery :
             {ps::block_delivery::maker{nullptr}, &ps::block_delivery::make<locked_list>})
          run_blocks(blocks, grains, workers, workers % 2 == 0 ? 0 : 50, 300, delivery);
  CHECK(locked_list::alive == 0);
}

TEST_CASE("run/ring: without workers the consumer processes blocks itself") {
  ps::ring ring(2, 3, 0);
  std::vector<std::vector<std::uint64_t>> blocks(2, std::vector<std::uint64_t>(4));
  adding work{blocks};
  for (std::uint64_t s = 0; s < 5; ++s) {
    ring.open(s);
    ring.serve_here(work, s);
    REQUIRE(ring.is_ready(s));
    REQUIRE(blocks[s % 2].back() == s);
  }
}

TEST_CASE("run/ring: stop ends every wait, before, while and after") {
  for (int round = 0; round < 200; ++round) {
    ps::ring ring(3, 2, round % 2 == 0 ? 0 : 20,
                  round % 3 == 0 ? &ps::block_delivery::make<locked_list> : nullptr);
    std::vector<std::vector<std::uint64_t>> blocks(3, std::vector<std::uint64_t>(3));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] {
        adding work{blocks};
        ring.serve(work);
      });
    threads.emplace_back([&, round] {
      for (int i = 0; i < round % 17; ++i) std::this_thread::yield();
      ring.stop();
    });
    std::uint64_t s = 0;
    do {
      ring.open(s);
    } while (ring.wait_ready(s++) && s < 1'000'000);
    REQUIRE(ring.stopped());
  }
}

}  // namespace ring_test
