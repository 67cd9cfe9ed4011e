// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Any number of workers, stages with random delays, busy processors: the bytes and states never change.

#include <penstock/core/random.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/weights.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

namespace any_machine_test {

namespace ps = penstock;
using engine_test::numbers;

namespace {

/// Threads that keep every processor busy during their lifetime.
class busy_machine {
 public:
  explicit busy_machine(bool busy) {
    for (unsigned i = 0; busy && i < 2 * std::max(1u, std::thread::hardware_concurrency()); ++i)
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
  }
  ~busy_machine() {
    stop_ = true;
    for (std::thread& one : threads_) one.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Now and then a sample takes longer, each time another one.
std::atomic<std::uint64_t> delays{0};
constexpr auto late = [](std::uint64_t x, ps::rng& random) {
  const std::uint64_t draw = ps::mix64(delays.fetch_add(1, std::memory_order_relaxed));
  if (draw % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 16 % 300));
  return ps::mix64(x) ^ random();
};

/// Two epochs: the values of each batch, and the state after it.
struct epochs_seen {
  std::vector<numbers> batches;
  std::vector<std::string> states;
  bool operator==(const epochs_seen&) const = default;
};
template <class Plan>
epochs_seen see(const Plan& plan) {
  epochs_seen seen;
  auto run = plan.open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      const auto values = b.values();
      seen.batches.emplace_back(values.begin(), values.end());
      if constexpr (ps::resumable<Plan>) seen.states.push_back(to_string(run.state()));
    }
  return seen;
}

template <class Plan>
void check_anywhere(const Plan& plan) {
  const epochs_seen expected = see(plan | ps::workers(0));
  REQUIRE(expected.batches.size() > 20);
  for (const bool busy : {false, true}) {
    const busy_machine others(busy);
    for (const unsigned workers : {1u, 2u, 7u}) {
      INFO(workers << " workers" << (busy ? ", busy" : ""));
      CHECK(see(plan | ps::workers(workers) | ps::prefetch(1 + workers % 3 * 4)) == expected);
    }
  }
}

constexpr auto same = [](std::uint64_t i) { return i; };

}  // namespace

TEST_CASE("run/any_machine: batches known without reading") {
  check_anywhere(ps::generated(500, same) | ps::shuffle(ps::seed(3)) | ps::shard(1, 2) | ps::map(late) |
                 ps::batch(16));
}

TEST_CASE("run/any_machine: a buffer, a filter, steps") {
  check_anywhere(ps::generated(700, same) | ps::shard(0, 2) | ps::shuffle_buffer(40) | ps::map(late) |
                 ps::filter([](std::uint64_t x) { return x % 5 != 0; }) | ps::batch(8) | ps::steps(30));
}

TEST_CASE("run/any_machine: a mixture") {
  check_anywhere(
      ps::mix(ps::weights{3, 1}, ps::generated(300, same) | ps::shuffle(ps::seed(1)),
              ps::generated(100, [](std::uint64_t i) { return i + 1000; }) | ps::shuffle(ps::seed(2))) |
      ps::map(late) | ps::global_batch(16));
}

TEST_CASE("run/any_machine: a source that is read forward") {
  check_anywhere(ps::from(std::views::iota(std::uint64_t{0}, std::uint64_t{400}) |
                          std::views::filter([](std::uint64_t) { return true; })) |
                 ps::map(late) | ps::batch(16));
}

}  // namespace any_machine_test
