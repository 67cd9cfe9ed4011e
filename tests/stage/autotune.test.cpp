// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/autotune.hpp>

#include <penstock/core/random.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/disturbed_run.hpp"
#include "support/evaluate_each.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace autotune_test {

namespace ps = penstock;
using namespace penstock_test;
using namespace std::chrono_literals;
using namespace penstock::literals;

namespace {

constexpr std::uint64_t samples = 600;

/// Takes some time, more for some.
std::uint64_t uneven(const std::vector<std::uint64_t>& made) {
  const std::uint64_t i = made.front();
  std::this_thread::sleep_for(std::chrono::microseconds(i % 50 == 0 ? 400 : 40));
  return i * i;
}

auto numbers() {
  return ps::generated(samples, [](std::uint64_t i) { return std::vector<std::uint64_t>{i}; }) |
         ps::shuffle(ps::seed(5)) | ps::map(uneven);
}

/// What positions say, without an engine.
std::vector<std::uint64_t> by_position() {
  std::vector<std::uint64_t> all(samples);
  evaluate_each(numbers(), [&](std::uint64_t i, std::uint64_t value) { all[i] = value; });
  return all;
}

std::int64_t some(ps::rng& draw, const std::optional<std::int64_t>& maximum) {
  return 1 + static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(*maximum)));
}

template <class Run>
std::vector<std::uint64_t> values_of_run(Run run) {
  std::vector<std::uint64_t> all;
  for (auto&& b : run) all.insert(all.end(), b.values().begin(), b.values().end());
  return all;
}

/// Changes limits at random.
template <class Run>
void disturb(Run& run, ps::rng& draw) {
  ps::run_limits wanted;
  if (draw.chance(0.5)) wanted.workers = some(draw, 6);
  if (draw.chance(0.5)) wanted.depth = some(draw, 24);
  run.adjust(wanted);
}

}  // namespace

TEST_CASE("stage/autotune: caps, which a run begins below") {
  const auto plan = numbers() | ps::batch(4);
  const auto usual = plan.open().limits();
  auto run = (plan | ps::autotune({.processors = 9, .memory = 64_MiB})).open();
  CHECK(run.limits().workers == usual.workers);
  CHECK(run.limits().depth == usual.depth);
  CHECK(run.options().memory == 64_MiB);
  run.adjust({.workers = 9, .depth = *usual.depth + 1});
  CHECK(error_of([&] { run.adjust({.workers = 10}); }).find("[1, 9]") != std::string::npos);
  CHECK(error_of([&] { run.adjust({.requests = 4}); }).find("fetches nothing ahead") != std::string::npos);
  CHECK(run.counters().autotune.tunes);
  CHECK((plan | ps::memory(1_MiB) | ps::autotune({.memory = 64_MiB})).open().options().memory == 1_MiB);

  auto one = (plan | ps::autotune({.processors = 1})).open();
  CHECK(one.limits().workers == 1);
  CHECK(error_of([&] { one.adjust({.workers = 2}); }).find("[1, 1]") != std::string::npos);
  auto fixed = (plan | ps::workers(3) | ps::prefetch(4) | ps::autotune({.processors = 9})).open();
  CHECK(fixed.limits().workers == 3);
  CHECK(fixed.limits().depth == 5);
  CHECK(error_of([&] { fixed.adjust({.workers = 4}); }).find("[1, 3]") != std::string::npos);
  CHECK(error_of([&] { fixed.adjust({.depth = 6}); }).find("[1, 5]") != std::string::npos);
  CHECK_FALSE((plan | ps::workers(0) | ps::autotune()).open().counters().autotune.tunes);

  CHECK(error_of([] { (void)ps::autotune({.processors = 0}); }).find("1 to 65536") != std::string::npos);
  CHECK(error_of([] { (void)ps::autotune({.within = 99ms}); }).find("100 ms") != std::string::npos);
  CHECK(error_of([] { (void)ps::autotune({.within = 25h}); }).find("a day") != std::string::npos);
  CHECK(ps::autotune({.processors = 2, .within = 3s}).describe() == "autotune(2 processors, within 3000 ms)");
}

TEST_CASE("stage/autotune: samples, order and states are those of positions, whatever is tried") {
  const std::vector<std::uint64_t> expected = by_position();
  const auto plan = numbers() | ps::batch(4) | ps::autotune({.processors = 6, .within = 100ms});
  auto run = plan.open();
  CHECK(ps::report(run.counters()).find("autotune, still trying: 0 trials") != std::string::npos);
  std::atomic<bool> went_back{false};
  std::jthread watcher([&went_back, monitor = run.monitor()](const std::stop_token& end) {
    for (std::uint64_t trials = 0; !end.stop_requested(); std::this_thread::sleep_for(100us)) {
      const std::uint64_t now = monitor.counters().autotune.trials;
      went_back = went_back || now < trials;
      trials = now;
    }
  });
  ps::state middle;
  // A step that changes, so that trials begin again and again.
  for (std::uint64_t pass = 0; pass < 100; ++pass) {
    std::vector<std::uint64_t> seen;
    for (auto&& b : run.epoch(0)) {
      seen.insert(seen.end(), b.values().begin(), b.values().end());
      if (pass % 2 == 1) std::this_thread::sleep_for(300us);
      if (pass == 1 && seen.size() == 200) middle = run.state();
    }
    REQUIRE(seen == expected);
    if (pass > 2 && run.counters().autotune.trials > 3) break;
  }
  CHECK(run.counters().autotune.trials > 3);
  watcher = {};
  CHECK_FALSE(went_back);

  // And by others, at once: what they set stays.
  auto other = plan.open(middle);
  std::jthread mover([&other](const std::stop_token& end) {
    for (ps::rng draw(1, 0, 0); !end.stop_requested(); std::this_thread::sleep_for(100us))
      disturb(other, draw);
  });
  ps::rng draw(2, 0, 0);
  std::size_t at = 200;
  for (auto&& b : other.rest()) {
    for (const std::uint64_t value : b.values()) REQUIRE(value == expected[at++]);
    disturb(other, draw);
    (void)other.counters();
  }
  CHECK(at == samples);
  mover = {};
  other.adjust({.workers = 5, .depth = 7});
  for (auto&& b : other.epoch(1)) (void)b;
  CHECK(other.limits().workers == 5);
  CHECK(other.limits().depth == std::int64_t{7});
}

TEST_CASE("stage/autotune: chunks after filter, and samples fetched from afar") {
  const auto kept = numbers() | ps::filter([](std::uint64_t x) { return x % 3 != 1; }) | ps::batch(4);
  const auto expected = values_of(kept);
  for (int pass = 0; pass < 3; ++pass)
    CHECK(values_of_run((kept | ps::autotune({.processors = 6, .within = 100ms})).open()) == expected);

  const ps::memory_files near = disturbed_shards();
  const auto texts = [](const auto& where) {
    return ps::webdataset(where) | ps::shuffle(ps::seed(7)) | ps::fields<"txt"> | ps::batch(4, ps::ragged);
  };
  const auto all_of = [](auto run, bool moves) {
    std::string all;
    ps::rng draw(3, 0, 0);
    for (auto epoch : run.epochs(3))
      for (auto&& b : epoch) {
        for (std::size_t i = 0; i < b.valid_size(); ++i) {
          const auto text = ps::get<"txt">(b)[i];
          all.append(reinterpret_cast<const char*>(text.data()), text.size()).append("\n");
        }
        if (moves) run.adjust({.ahead = some(draw, 16384), .requests = some(draw, 256)});
      }
    return all;
  };
  const ps::simulated_storage far(near, {.latency = 1ms, .jitter = 1ms});
  const std::string bytes = all_of(texts(near).open(), false);
  auto run = (texts(far) | ps::autotune({.processors = 4, .within = 100ms})).open();
  CHECK(run.limits().ahead == std::int64_t{4096});
  CHECK(run.limits().requests == 64);
  CHECK(all_of(std::move(run), false) == bytes);
  CHECK(all_of((texts(far) | ps::autotune({.processors = 4})).open(), true) == bytes);
}

}  // namespace autotune_test
