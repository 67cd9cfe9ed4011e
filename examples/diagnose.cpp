// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Why does the accelerator wait? Four loops, each slow for another reason, and three steps that tell them
// apart:
//
//   1. Does the loop wait for batches at all?
//   2. If so: which stage keeps the workers busy, or what do they wait for?
//   3. Does the same plan over a source that costs nothing run faster?
//
//     diagnose --out folder     writes a timeline of each, for ui.perfetto.dev or chrome://tracing
//
// Exits with 1 if a verdict is not the expected one.

#include <penstock/all.hpp>

#include "arguments.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace ps = penstock;
using std::chrono::microseconds;

namespace {

/// Computes for a while, like a decoder. A worker that lost the processor catches up with its next samples,
/// so the rate is the same on a busy machine.
struct compute {
  microseconds time;
  std::uint64_t operator()(ps::bytes_view bytes) const {
    thread_local auto due = std::chrono::steady_clock::now();
    due += time;
    std::uint64_t sum = 0;
    do {
      for (const std::byte b : bytes) sum = sum * 31 + static_cast<std::uint64_t>(b);
    } while (std::chrono::steady_clock::now() < due);
    return sum;
  }
};

struct loop {
  std::string_view name;
  ps::bottleneck meant;
  microseconds read{0};              // per sample, on average without a tail
  double tail = 0, tail_factor = 1;  // now and then a read takes longer
  microseconds work{0};              // per sample
  microseconds step{0};              // per batch
  std::uint64_t batch = 4, batches = 30;
  unsigned workers = 1;
  std::uint64_t ahead = 4;  // batches
};

/// Runs a loop and returns its counters from the second batch on, when all threads have started.
ps::run_counters run_loop(const loop& what, microseconds read, const ps::timeline& trace,
                          std::string* report) {
  const ps::simulated accelerator({.step = what.step, .bytes_per_second = 1e9});
  const auto plan = ps::synthetic({.samples = what.batch * what.batches,
                                   .bytes = 4096,
                                   .cost = read,
                                   .seed = 7,
                                   .tail_probability = what.tail,
                                   .tail_factor = what.tail_factor,
                                   .wait = ps::synthetic_wait::sleep}) |
                    ps::map(compute{what.work}) | ps::batch(what.batch) | ps::pin_and_copy(accelerator) |
                    ps::workers(what.workers) | ps::prefetch(what.ahead) | trace;
  auto run = plan.open();
  ps::run_counters first;
  for (auto&& b : run.epoch(0)) {
    accelerator.step();
    if (b.step() == 0) first = run.counters();
  }
  const ps::run_counters all = run.counters();
  if (report != nullptr) *report = ps::report(all, first);
  return ps::since(all, first);
}

bool diagnose(const loop& what, const std::string& folder) {
  const ps::timeline trace, unwatched;
  std::string report;
  const ps::run_counters real = run_loop(what, what.read, trace, &report);
  const ps::run_counters unread = run_loop(what, microseconds(0), unwatched, nullptr);
  const ps::verdict found = ps::judge(real), against = ps::judge_against(real, unread);
  std::printf("== %.*s\n%s", static_cast<int>(what.name.size()), what.name.data(), report.c_str());
  std::printf("without reading: %.0f samples/s instead of %.0f; %s: %s\n", unread.samples_per_second(),
              real.samples_per_second(), std::string(to_string(against.limit)).c_str(),
              against.advice.c_str());
  if (!folder.empty()) {
    const std::string path = (std::filesystem::path(folder) / (std::string(what.name) + ".json")).string();
    trace.write(path);
    std::printf("timeline: %s\n", path.c_str());
  }
  std::printf("\n");
  if (found.limit == what.meant && against.limit == what.meant) return true;
  std::printf("MEANT %s\n\n", std::string(to_string(what.meant)).c_str());
  return false;
}

}  // namespace

int main(int count, char** values) try {
  constexpr const char* usage = "diagnose [--out FOLDER]";
  if (asked_for_help(count, values, usage)) return 0;
  arguments given(count, values, usage);
  const std::string folder = given.text("out", "");
  given.done();
  if (!folder.empty()) std::filesystem::create_directories(folder);

  // The times are far apart, so that a busy machine gives the same verdicts.
  const loop loops[] = {
      // Reads take 20 ms per batch, everything else almost nothing.
      {.name = "io", .meant = ps::bottleneck::io, .read = microseconds(5000), .step = microseconds(500)},
      // Reads take almost nothing, a function 20 ms per batch.
      {.name = "cpu",
       .meant = ps::bottleneck::cpu,
       .work = microseconds(10'000),
       .step = microseconds(500),
       .batch = 2},
      // Three workers read a batch in 2 ms or, one in eight, in 60: fast enough on average for steps of 8 ms.
      // But only one batch is ready when a slow one comes.
      {.name = "jitter",
       .meant = ps::bottleneck::jitter,
       .read = microseconds(2000),
       .tail = 0.125,
       .tail_factor = 30,
       .step = microseconds(8000),
       .batch = 1,
       .batches = 80,
       .workers = 3,
       .ahead = 1},
      // A batch takes 2 ms, a step 20.
      {.name = "consumer",
       .meant = ps::bottleneck::consumer,
       .read = microseconds(500),
       .step = microseconds(20'000)},
  };
  bool all_as_meant = true;
  for (const loop& each : loops) all_as_meant = diagnose(each, folder) && all_as_meant;
  return all_as_meant ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
