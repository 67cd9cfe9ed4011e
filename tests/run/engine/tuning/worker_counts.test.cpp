// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/tuning/worker_counts.hpp>

#include "support/catch.hpp"

#include <array>
#include <vector>

namespace worker_counts_test {

namespace ps = penstock;

TEST_CASE("run/worker_counts: workers' counts are summed by the names of source and value stages") {
  std::vector<ps::worker_counts> workers(2);
  for (auto& w : workers) w.follow_stages(2);
  workers[0].add(10, 1'000'000'000);
  workers[1].add(30, 500'000'000);
  workers[0].publish(std::vector<ps::stage_cost>{{}, {400, 4}});
  ps::run_counters all;
  ps::add_worker_counts(all, workers, {"from", "map"});
  REQUIRE(all.stages.size() == 2);
  CHECK(all.stages[0].name == "from");
  CHECK(all.stages[1].name == "map");
  CHECK(all.stages[1].samples == 40);
  CHECK(all.stages[1].busy_seconds == Approx(40 * 100e-9));
  CHECK(all.worker_busy_seconds == Approx(1.5));
}

TEST_CASE("run/worker_counts: what was shown does not go back, and a stall is the sum of its parts") {
  ps::shown_counters shown;
  const auto show = [&](double stall, double slow, double busy) {
    ps::run_counters all;
    all.stages = {{"from", 1, busy}};
    all.stall_seconds = stall;
    all.stall_on_slow_sample = slow;
    shown.hold(all);
    return std::array{all.stall_seconds, all.stall_on_slow_sample, all.stages[0].busy_seconds};
  };
  CHECK(show(1, 0.5, 3) == std::array{1.0, 0.5, 3.0});
  CHECK(show(2, 0.5, 2) == std::array{2.0, 0.5, 3.0});    // a wait that lasts, and an estimate that falls
  CHECK(show(2, 1.5, 4) == std::array{2.0, 0.5, 4.0});    // it was for a slow sample, which was not known
  CHECK(show(1.5, 0.5, 4) == std::array{2.0, 0.5, 4.0});  // read before
  CHECK(show(3, 2.5, 4) == std::array{3.0, 1.5, 4.0});
}

TEST_CASE("run/worker_counts: the part of a wait for room during which the consumer waited too") {
  ps::stall_clock stall;
  ps::worker_counts counts;
  stall.begin(100);
  CHECK(stall.at(130) == 30);
  const ps::room_wait first{120, stall.at(120)};
  stall.end(150);
  CHECK(stall.at(1000) == 50);
  counts.add_room(first, 200, stall);  // 120 to 200, the consumer waited until 150
  CHECK(counts.room_ns == 80);
  CHECK(counts.room_in_stall_ns == 30);
  counts.add_room({300, stall.at(300)}, 900, stall);  // the consumer did not wait
  CHECK(counts.room_ns == 680);
  CHECK(counts.room_in_stall_ns == 30);
  CHECK(stall.at(0) == 50);
  const ps::room_wait last{1000, stall.at(1000)};
  stall.begin(1100);
  counts.add_room(last, 1150, stall);  // the consumer still waits
  CHECK(counts.room_in_stall_ns == 80);
  CHECK(stall.at(1099) == 49);  // as seen from before the wait began
  CHECK(stall.at(1) == 0);
  constexpr std::uint64_t years = std::uint64_t{1} << 61;
  stall.end(years);
  CHECK(stall.at(0) == 50 + years - 1100);
}

}  // namespace worker_counts_test
