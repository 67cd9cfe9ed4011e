// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/tuning/live_limits.hpp>

#include <penstock/core/error.hpp>
#include <penstock/evaluation/stage_chain.hpp>

#include "support/catch.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>

namespace live_limits_test {

namespace ps = penstock;

namespace {

std::string refusal(ps::live_limits& limits, const ps::run_limits& wanted) {
  try {
    limits.adjust(wanted);
    return "";
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    return e.what();
  }
}

}  // namespace

TEST_CASE("run/engine/tuning/live_limits: given limits change, the others do not") {
  ps::live_limits limits(4, 6, 3, 100);
  CHECK(limits.now().workers == 4);
  CHECK(limits.now().depth == 18);
  CHECK(limits.now().ahead == 100);
  limits.adjust({.workers = 2});
  limits.adjust({.depth = 7});
  CHECK(limits.workers() == 2);
  CHECK(limits.blocks() == 3);  // whole blocks
  CHECK(limits.now().depth == 9);
  CHECK(limits.ahead() == 100);
  limits.adjust({.ahead = 0});
  CHECK(limits.ahead() == 0);
  CHECK(limits.may_work(1));
  CHECK_FALSE(limits.may_work(2));
  limits.adjust({.workers = 4, .depth = 18, .ahead = 100});
  CHECK(limits.may_work(3));
  CHECK(limits.blocks() == 6);
}

TEST_CASE(
    "run/engine/tuning/live_limits: a limit out of range is refused with its number, and nothing changes") {
  ps::live_limits limits(4, 6, 1, 100);
  using Catch::Contains;
  CHECK_THAT(refusal(limits, {.workers = 0}), Contains("workers = 0 is not in [1, 4]"));
  CHECK_THAT(refusal(limits, {.workers = -1}), Contains("workers = -1 is not in [1, 4]"));
  CHECK_THAT(refusal(limits, {.workers = 5}), Contains("workers = 5") && Contains("workers(n)"));
  CHECK_THAT(refusal(limits, {.depth = 0}), Contains("depth = 0 is not in [1, 6]"));
  CHECK_THAT(refusal(limits, {.depth = INT64_MAX}), Contains("depth = 9223372036854775807"));
  CHECK_THAT(refusal(limits, {.ahead = -3}), Contains("ahead = -3 is not in [0, 100]"));
  CHECK_THAT(refusal(limits, {.workers = 1, .depth = 2, .ahead = 101}), Contains("ahead = 101"));
  CHECK(limits.now().workers == 4);
  CHECK(limits.now().depth == 6);
  ps::live_limits alone(0, 1, 1, 0);
  CHECK_THAT(refusal(alone, {.workers = 1}), Contains("calling thread"));
  CHECK_THAT(refusal(alone, {.depth = 1}), Contains("calling thread"));
  CHECK_FALSE(alone.now().workers);
  CHECK_FALSE(alone.now().depth);
  CHECK(alone.now().ahead == 0);
  // requests only where something is fetched
  CHECK_THAT(refusal(limits, {.requests = 1}), Contains("fetches nothing ahead"));
  limits.fetches(32);
  CHECK(limits.now().requests == 32);
  CHECK_THAT(refusal(limits, {.requests = 33}), Contains("requests = 33 is not in [1, 32]"));
  CHECK_THAT(refusal(limits, {.requests = 0}), Contains(".max_in_flight"));
  limits.adjust({.requests = 8});
  CHECK(limits.now().requests == 8);
  CHECK(limits.requests() == 8);
  limits.fetches(0);
  CHECK_FALSE(limits.now().requests);
  CHECK_THAT(refusal(limits, {.requests = 4097}), Contains("[1, 4096]"));
}

TEST_CASE(
    "run/engine/tuning/live_limits: a thread beyond the limit rests until it is raised, or all are stopped") {
  ps::live_limits limits(3, 2, 1, 0);
  limits.adjust({.workers = 1});
  std::array<std::atomic<bool>, 2> awake{};
  std::jthread second([&] {
    limits.rest(1);
    awake[0] = true;
  });
  std::jthread third([&] {
    limits.rest(2);
    awake[1] = true;
  });
  limits.rest(0);  // may work: returns immediately
  limits.adjust({.workers = 2});
  second.join();
  CHECK(awake[0]);
  CHECK_FALSE(awake[1]);
  limits.stop();
  third.join();
  limits.adjust({.workers = 1});  // once they are stopped, no thread rests
  limits.rest(2);
  CHECK(limits.workers() == 1);
}

TEST_CASE("run/engine/tuning/live_limits: worker time counts only working threads") {
  ps::live_limits limits(4, 2, 1, 0);
  limits.adjust({.workers = 1});
  const std::uint64_t after = ps::detail::now_ns(), before = limits.worker_ns(after);
  CHECK(limits.worker_ns(after + 1000) == before + 1000);
  limits.adjust({.workers = 3});
  const std::uint64_t later = ps::detail::now_ns() + 1'000'000;
  CHECK(limits.worker_ns(later + 1000) == limits.worker_ns(later) + 3000);
}

}  // namespace live_limits_test
