// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Why does the accelerator wait? `headspace` says what loading costs a loop, and what to blame, here for five
// loops that are slow for five reasons: a slow disk, a slow decoder, samples that take uneven times, a slow
// step, and too few processors.
//
//     diagnose --out folder     draws a picture of each
//     diagnose --only cpu       one of them: disk, cpu, uneven, step, processors
//
// Exits with 1 if a verdict is not the expected one.

#include <penstock/all.hpp>

#include "arguments.hpp"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <sched.h>

namespace ps = penstock;
using std::chrono::microseconds;

namespace {

/// Computes until the thread has had the processor for so long.
void compute_for(microseconds time) {
  const auto used = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  };
  for (const auto begin = used(); used() - begin < time;) {
  }
}

/// A decoder that takes its time.
struct decoder {
  microseconds time;
  std::uint64_t operator()(ps::bytes_view bytes) const {
    compute_for(time);
    return bytes.size();
  }
};

struct loop {
  std::string_view name;
  ps::bottleneck meant;
  microseconds read{0};                // per sample, on average without a tail
  double tail = 0, tail_factor = 1;    // now and then a read takes longer
  microseconds decode{0};              // per sample
  microseconds step{0};                // per batch, on the accelerator
  microseconds launch{0};              // per batch, of the thread that runs the loop
  std::uint64_t batch = 4, turn = 12;  // samples, and batches of a turn
  unsigned workers = 1;
  std::uint64_t ahead = 4;  // batches
  bool one_processor = false;
};

/// All threads that are started meanwhile share the processor of this one.
class on_one_processor {
 public:
  explicit on_one_processor(bool wanted) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    if (!wanted) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  on_one_processor(const on_one_processor&) = delete;
  on_one_processor& operator=(const on_one_processor&) = delete;
  ~on_one_processor() { ::sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

bool diagnose(const loop& what, const std::string& folder) {
  const on_one_processor bound(what.one_processor);
  const ps::simulated accelerator({.step = what.step, .bytes_per_second = 1e9});
  const auto plan = ps::synthetic({.samples = 100'000,
                                   .bytes = 4096,
                                   .cost = what.read,
                                   .seed = 7,
                                   .tail_probability = what.tail,
                                   .tail_factor = what.tail_factor,
                                   .wait = ps::synthetic_wait::sleep}) |
                    ps::map(decoder{what.decode}) | ps::batch(what.batch) | ps::pin_and_copy(accelerator) |
                    ps::workers(what.workers) | ps::prefetch(what.ahead);
  const auto step = [&](auto&) {
    compute_for(what.launch);
    accelerator.step();
  };
  const ps::headspace_report found = ps::headspace(plan, step, {.batches = what.turn});
  std::printf("== %.*s\n%s\n", static_cast<int>(what.name.size()), what.name.data(), found.text().c_str());
  if (!folder.empty()) {
    const auto path = std::filesystem::path(folder) / (std::string(what.name) + ".svg");
    if (!(std::ofstream(path) << found.svg() << std::flush))
      throw std::runtime_error("cannot write " + path.string());
    std::printf("picture: %s\n", path.c_str());
  }
  std::printf("\n");
  if (found.why.limit == what.meant) return true;
  std::printf("MEANT %s\n\n", std::string(to_string(what.meant)).c_str());
  return false;
}

}  // namespace

int main(int count, char** values) try {
  constexpr const char* usage = "diagnose [--out FOLDER] [--only NAME]";
  if (asked_for_help(count, values, usage)) return 0;
  arguments given(count, values, usage);
  const std::string folder = given.text("out", ""), only = given.text("only", "");
  given.done();
  if (!folder.empty()) std::filesystem::create_directories(folder);

  // The times are far apart, so that a busy machine gives the same verdicts.
  const loop loops[] = {
      // Reads take 10 ms a batch, everything else almost nothing.
      {.name = "disk", .meant = ps::bottleneck::io, .read = microseconds(2500), .step = microseconds(500)},
      // Reads take almost nothing, a function 10 ms a batch.
      {.name = "cpu",
       .meant = ps::bottleneck::cpu,
       .decode = microseconds(5000),
       .step = microseconds(500),
       .batch = 2},
      // Three workers read a batch in 2 ms or, one in eight, in 60: fast enough on average for steps of 8 ms.
      // But only one batch is ready when a slow one comes.
      {.name = "uneven",
       .meant = ps::bottleneck::jitter,
       .read = microseconds(2000),
       .tail = 0.125,
       .tail_factor = 30,
       .step = microseconds(8000),
       .batch = 1,
       .turn = 48,
       .workers = 3,
       .ahead = 1},
      // A batch takes 2 ms, a step 20.
      {.name = "step",
       .meant = ps::bottleneck::consumer,
       .read = microseconds(500),
       .step = microseconds(20'000)},
      // The step computes for 5 ms, and so does a worker for each batch. Two processors would do both at
      // once.
      {.name = "processors",
       .meant = ps::bottleneck::starved,
       .decode = microseconds(1250),
       .launch = microseconds(5000),
       .one_processor = true},
  };
  bool any = false, all_as_meant = true;
  for (const loop& each : loops) {
    if (!only.empty() && only != each.name) continue;
    any = true;
    all_as_meant = diagnose(each, folder) && all_as_meant;
  }
  if (!any)
    throw std::runtime_error("--only is disk, cpu, uneven, step or processors, and not '" + only + "'");
  return all_as_meant ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "diagnose: %s\n", e.what());
  return 2;
}
