// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/observe/metrics.hpp>

#include <penstock/core/version.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/external_program.hpp"
#include "support/metrics_page.hpp"
#include "support/temp_dir.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace metrics_test {

namespace ps = penstock;
using penstock_test::metrics_page;
using namespace std::chrono_literals;

namespace {

/// Counters of which each has another value.
ps::run_counters different() {
  ps::run_counters c;
  c.stages = {{"webdataset", 6400, 4.5}, {"map", 6400, 1.25}, {"map", 6300, 0.5}};
  c.samples = 6300;
  c.batches = 3;
  c.bytes = 12345;
  c.workers = 2;
  c.depth = 8;
  c.seconds = 10;
  c.stall_seconds = 1.5;
  c.stall_on_slow_sample = 0.25;
  c.waiting_for_copy = 0.125;
  c.worker_busy_seconds = 7;
  c.waiting_for_room = 2;
  c.waiting_for_input = 0.75;
  c.longest_sample_seconds = 0.75;
  c.block_waits.add(0);
  c.block_waits.add(3'000);
  c.block_waits.add(100'000'000'000);
  c.epoch = 4;
  c.step = 17;
  c.ready = 5;
  c.bytes_held = 1 << 20;
  c.skipped = 1;
  c.replaced = 2;
  c.warnings = 3;
  c.kept = {10, 4096, 20, 5};
  c.storage = {.requests = 12, .bytes = 99, .slow_downs = 1, .retries = 2, .given_up = 3, .hits = 6};
  c.storage_requests = {7, 2, 1, {}};
  for (int i = 0; i < 10; ++i) c.storage_requests.durations.add(20'000'000);
  return c;
}

std::string refusal_of(const ps::metric_labels& labels) {
  try {
    static_cast<void>(ps::metrics_text(ps::run_counters{}, labels));
  } catch (const ps::error& e) {
    return std::string(e.message());
  }
  return "none";
}

/// Whether a series of `after` is below that of `before`; gauges may be.
std::string fell(const metrics_page& before, const metrics_page& after) {
  for (const auto& [name, one] : before.metrics) {
    const auto& now = after.metrics.at(name);
    if (one.type == "gauge") continue;
    for (const auto& [labels, value] : one.series)
      if (now.series.at(labels) < value) return name;
    for (const auto& [labels, buckets] : one.buckets)
      for (const auto& [bound, count] : buckets)
        if (now.buckets.at(labels).at(bound) < count) return name + " bucket";
    for (const auto& [labels, value] : one.sum_and_count)
      if (now.sum_and_count.at(labels).first < value.first) return name + " sum";
  }
  return "none";
}

/// Work of uneven length, so that times of stages are estimated badly.
std::uint64_t uneven(std::uint64_t i) {
  std::uint64_t x = i;
  for (std::uint64_t rounds = i % 97 == 0 ? 20'000 : i % 5 * 20; rounds != 0; --rounds)
    x = x * 6364136223846793005u + 1;
  return x;
}

}  // namespace

TEST_CASE("observe/metrics: every counter has its series, with its labels") {
  const metrics_page page(ps::metrics_text(different(), {{"run", "train"}}));
  const auto of = [&](const std::string& name, const std::string& label = {}, const std::string& value = {}) {
    metrics_page::labels all{{"run", "train"}};
    if (!label.empty()) all[label] = value;
    return page.value(name, all);
  };
  CHECK(of("penstock_samples_delivered_total") == 6300);
  CHECK(of("penstock_batches_delivered_total") == 3);
  CHECK(of("penstock_delivered_bytes_total") == 12345);
  CHECK(of("penstock_run_seconds_total") == 10);
  CHECK(of("penstock_consumer_stall_seconds_total", "reason", "slow_sample") == 0.25);
  CHECK(of("penstock_consumer_stall_seconds_total", "reason", "throughput") == 1.25);
  CHECK(of("penstock_consumer_stall_seconds_total", "reason", "copy") == 0.125);
  CHECK(of("penstock_consumer_stall_seconds_total", "reason", "evaluation") == 0);
  CHECK(of("penstock_stage_busy_seconds_total", "stage", "webdataset") == 4.5);
  CHECK(of("penstock_stage_busy_seconds_total", "stage", "map") == 1.25);
  CHECK(of("penstock_stage_busy_seconds_total", "stage", "map#2") == 0.5);
  CHECK(of("penstock_stage_samples_total", "stage", "map#2") == 6300);
  CHECK(of("penstock_worker_seconds_total", "state", "busy") == 7);
  CHECK(of("penstock_worker_seconds_total", "state", "waiting_for_room") == 2);
  CHECK(of("penstock_worker_seconds_total", "state", "waiting_for_input") == 0.75);
  CHECK(of("penstock_longest_sample_seconds") == 0.75);
  CHECK(of("penstock_workers") == 2);
  CHECK(of("penstock_depth") == 8);
  CHECK(of("penstock_batches_ready") == 5);
  CHECK(of("penstock_held_bytes") == 1 << 20);
  CHECK(of("penstock_epoch") == 4);
  CHECK(of("penstock_step") == 17);
  CHECK(of("penstock_bad_samples_total", "kind", "skipped") == 1);
  CHECK(of("penstock_bad_samples_total", "kind", "replaced") == 2);
  CHECK(of("penstock_bad_samples_total", "kind", "damaged") == 3);
  CHECK(of("penstock_storage_requests_total", "outcome", "ok") == 7);
  CHECK(of("penstock_storage_requests_total", "outcome", "failed") == 2);
  CHECK(of("penstock_storage_requests_total", "outcome", "cancelled") == 1);
  CHECK(of("penstock_storage_read_bytes_total") == 99);
  CHECK(of("penstock_storage_events_total", "event", "retry") == 2);
  CHECK(of("penstock_cache_hits_total", "tier", "memory") == 20);
  CHECK(of("penstock_cache_misses_total", "tier", "memory") == 15);
  CHECK(of("penstock_cache_hits_total", "tier", "storage") == 6);
  CHECK(of("penstock_build_info", "version", std::string(ps::version)) == 1);

  const metrics_page::labels train{{"run", "train"}};
  const auto& waits = page.metrics.at("penstock_next_duration_seconds");
  const auto& buckets = waits.buckets.at(train);
  CHECK(buckets.size() == ps::duration_counts::buckets);
  CHECK(buckets.begin()->first == ps::duration_counts::bound(0));
  CHECK(buckets.at(ps::duration_counts::bound(0)) == 1);
  CHECK(buckets.at(64) == 2);
  CHECK(waits.sum_and_count.at(train) == std::pair<double, double>(100.000003, 3));
  const auto& requests = page.metrics.at("penstock_storage_request_duration_seconds");
  CHECK(requests.sum_and_count.at(train).second == 10);

  ps::run_counters alone = different();
  alone.workers = 0;
  alone.stall_seconds = alone.stall_on_slow_sample = 0;
  CHECK(metrics_page(ps::metrics_text(alone))
            .value("penstock_consumer_stall_seconds_total", {{"reason", "evaluation"}}) == 7);
}

TEST_CASE("observe/metrics: the page of the documentation has the series that there are") {
  const char* const support = std::getenv("PENSTOCK_TEST_SUPPORT");
  REQUIRE(support != nullptr);
  std::ifstream in(std::string(support) + "/../../docs/metrics.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  std::string table = "| metric | type | label | what it is |\n|---|---|---|---|\n";
  for (const auto& one : ps::detail::metric_families()) {
    const auto kind = static_cast<std::size_t>(one.kind);
    std::string labels;
    std::vector<ps::detail::metric_point> points;
    one.read(different(), points);
    if (one.label == "stage" || one.label == "version")
      labels = "`" + std::string(one.label) + "`";
    else if (!one.label.empty())
      for (const auto& point : points)
        labels += (labels.empty() ? "`" + std::string(one.label) + "`: `" : ", `") + point.label + "`";
    table += "| `" + std::string(one.name) + "` | " + std::array{"counter", "gauge", "histogram"}[kind] +
             " | " + labels + " | " + std::string(one.help.substr(0, one.help.size() - 1)) + " |\n";
  }
  INFO(table);
  CHECK(page.find(table + "\n") != std::string::npos);
}

TEST_CASE("observe/metrics: labels are escaped or refused, and several runs share a page") {
  const std::string odd = "a\"b\\c\nd, {e}=\xff";
  const metrics_page page(ps::metrics_text(different(), {{"run", odd}}));
  CHECK(page.value("penstock_step", {{"run", "a\"b\\c\nd, {e}=\xef\xbf\xbd"}}) == 17);
  for (const char* name : {"", "1a", "a-b", "a b", "__a", "\xc3\xa4", "a:b"})
    CHECK_THAT(refusal_of({{name, "x"}}), penstock_test::contains("a label cannot be called"));
  for (const char* name : {"le", "stage", "reason"})
    CHECK_THAT(refusal_of({{name, "x"}}), penstock_test::contains("another name"));
  CHECK_THAT(refusal_of({{"run", "x"}, {"run", "y"}}), penstock_test::contains("twice"));

  std::vector<ps::labelled_counters> runs{{different(), {{"run", "train"}}},
                                          {different(), {{"run", "eval"}, {"rank", "1"}}},
                                          {ps::run_counters{}, {}}};
  runs[1].counters.samples = 5;
  const metrics_page both(ps::metrics_text(runs));
  CHECK(both.value("penstock_samples_delivered_total", {{"run", "train"}}) == 6300);
  CHECK(both.value("penstock_samples_delivered_total", {{"run", "eval"}, {"rank", "1"}}) == 5);
  CHECK(both.value("penstock_samples_delivered_total") == 0);
  runs.push_back({different(), {{"rank", "1"}, {"run", "eval"}, {"host", ""}}});
  CHECK_THROWS_WITH(ps::metrics_text(runs), penstock_test::contains("two runs have the same labels"));

  const std::string open = ps::metrics_text(different(), {}, ps::metrics_format::openmetrics);
  CHECK_THAT(open, penstock_test::contains("# TYPE penstock_samples_delivered counter\n"
                                           "penstock_samples_delivered_total 6300\n"));
  CHECK(open.substr(open.size() - 6) == "# EOF\n");

  if (!penstock_test::have_program("promtool", "promtool --version")) return;
  const penstock_test::temp_dir folder;
  runs.pop_back();
  std::ofstream(folder.path() / "page") << ps::metrics_text(runs);
  const auto checked =
      penstock_test::run_program("promtool check metrics < " + (folder.path() / "page").string());
  CHECK(checked.output.empty());
  CHECK(checked.status == 0);
}

TEST_CASE("observe/metrics: no counter goes back, however a run goes") {
  const penstock_test::deadline limit("runs whose counters are read all the time");
  const auto watched = [](const auto& plan, auto&& use) {
    auto run = plan.open();
    const ps::run_monitor seen = run.monitor();
    std::atomic<bool> end{false};
    std::atomic<int> pages{0};
    std::vector<std::string> wrong(2);
    std::vector<std::thread> readers;
    for (std::string& one : wrong)
      readers.emplace_back([&, seen] {
        metrics_page before(ps::metrics_text(seen.counters()));
        one = "none";
        do {
          metrics_page now(ps::metrics_text(seen.counters()));
          if (one == "none") one = fell(before, now);
          before = std::move(now);
          ++pages;
        } while (!end);
      });
    use(run, pages);
    end = true;
    for (std::thread& one : readers) one.join();
    CHECK(wrong == std::vector<std::string>{"none", "none"});
    const ps::run_counters last = run.counters();
    CHECK(last.block_waits.count() == last.batches);
    CHECK(last.storage_requests.durations.count() == last.storage.requests);
    return last;
  };
  const auto epochs = [](auto& run, const std::atomic<int>& pages) {
    for (int i = 0; i < 2 || pages < 80; ++i)
      for (auto&& b : run.epoch(static_cast<std::uint64_t>(i))) static_cast<void>(b);
  };
  const auto samples =
      ps::generated(4000, uneven) | ps::map([](std::uint64_t x) { return uneven(x % 1000); });
  watched(samples | ps::batch(4) | ps::prefetch(8) | ps::workers(2), [&](auto& run, auto& pages) {
    for (int i = 0; i < 4 || pages < 80; ++i) {
      run.adjust({.workers = 1 + i % 2, .depth = 2 + i % 6});
      for (auto&& b : run.epoch(static_cast<std::uint64_t>(i))) static_cast<void>(b);
    }
  });
  CHECK(watched(samples | ps::batch(40) | ps::workers(0), epochs).block_waits.sum_ns > 0);
  watched(samples | ps::workers(1), epochs);

  using far_memory = ps::simulated_storage<ps::memory_files>;
  const ps::retrying far(
      far_memory(ps::memory_files().add("t.bin", std::string(8000, '\1')), {.latency = 50us, .failing = 0.2}),
      {.initial_backoff = 1ms, .max_backoff = 1ms, .budget = 0});
  const auto last = watched(
      ps::raw_tokens<std::uint16_t>(far, ps::token_window<16, 0>{}) | ps::batch(2) | ps::workers(2), epochs);
  CHECK(last.storage_requests.failed == last.storage.retries);
  CHECK(last.storage_requests.answered + last.storage_requests.failed == last.storage.requests);
}

}  // namespace metrics_test
