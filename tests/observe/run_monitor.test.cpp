// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/run_monitor.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace run_monitor_test {

namespace ps = penstock;

namespace {

float half_of(std::uint64_t i) { return static_cast<float>(i) / 2; }

}  // namespace

TEST_CASE("a monitor shows what a run delivers, from other threads, and never goes back") {
  const auto plan = ps::generated(4096, half_of) | ps::shuffle(ps::seed(1)) | ps::batch(16) | ps::workers(2);
  auto run = std::make_optional(plan.open());
  std::atomic<bool> end{false};
  std::vector<std::thread> readers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&wrong, &end, seen = run->monitor()] {
      ps::run_counters before;
      do {
        const ps::run_counters now = seen.counters();
        if (now.samples < before.samples || now.bytes < before.bytes || now.batches < before.batches ||
            now.stall_seconds < before.stall_seconds || now.block_waits.count() < before.block_waits.count())
          ++wrong;
        before = now;
      } while (!end);
    });
  const ps::run_monitor seen = run->monitor();
  for (auto epoch : run->epochs(3))
    for (auto&& b : epoch) {
      const ps::run_counters now = seen.counters();
      if (now.epoch != epoch.number() || now.step != b.step() + 1) ++wrong;
    }
  CHECK(wrong == 0);
  CHECK(seen.counters().samples == 3 * 4096);
  CHECK(seen.counters().batches == 3 * 256);

  auto moved = std::move(*run);  // the monitor follows
  run.reset();
  CHECK_FALSE(seen.ended());
  { const auto last = std::move(moved); }
  CHECK(seen.ended());
  CHECK(seen.counters().samples == 3 * 4096);
  end = true;
  for (std::thread& one : readers) one.join();
  CHECK(wrong == 0);
}

TEST_CASE("counters tell how many batches are ready, and the place of a loop without batches") {
  auto run = (ps::generated(64, half_of) | ps::batch(4) | ps::workers(1) | ps::prefetch(4)).open();
  const ps::run_monitor seen = run.monitor();
  {
    const auto first = run.next();
    while (seen.counters().ready == 0) std::this_thread::yield();
  }
  while (run.next()) {
  }
  CHECK(seen.counters().ready == 0);
  CHECK(seen.counters().step == 16);

  auto rows =
      (ps::generated(64, half_of) | ps::filter([](float f) { return f < 20; }) | ps::workers(1)).open();
  std::uint64_t count = 0;
  for ([[maybe_unused]] auto&& row : rows) ++count;
  CHECK(count == 40);
  CHECK(rows.monitor().counters().batches == 40);
}

TEST_CASE("a batch is shown to who asks for the next one, and to nobody afterwards") {
  auto run = (ps::generated(64, half_of) | ps::batch(4) | ps::workers(1)).open();
  using batch_type = decltype(run)::value_type;
  ps::run_monitor seen = run.monitor();
  std::vector<std::uint64_t> steps;
  const ps::detail::batch_viewer viewer{&steps, [](void* self, const void* batch) noexcept {
                                          static_cast<std::vector<std::uint64_t>*>(self)->push_back(
                                              static_cast<const batch_type*>(batch)->step());
                                        }};
  (void)run.next();
  seen.shared_with_run().show_next(viewer);
  (void)run.next();
  (void)run.next();
  CHECK(steps == std::vector<std::uint64_t>{1});
  seen.shared_with_run().show_next(viewer);
  seen.shared_with_run().show_none();
  (void)run.next();
  CHECK(steps.size() == 1);
}

}  // namespace run_monitor_test
