// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 14: the share of time that a simulated accelerator waits for data (14a to 14c). Samples take 50 us,
// plus or minus half, and one in a hundred takes twenty times as long. Reported without a bar, because it
// depends on the number of processors. The time from opening a plan to its first batch, if a small sample
// takes 1 ms to make, and the time of the batch's own samples divided by the workers (14d to 14f).

#include "support/harness.hpp"

#include <penstock/device/simulated.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/synthetic.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/pin_and_copy.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

using namespace std::chrono_literals;

void one(const bench::options& o, const bench::row& r, std::chrono::microseconds step, unsigned count,
         std::uint64_t ahead) {
  if (!o.wants(r.id)) return;
  std::vector<double> stalls;
  for (int i = 0; i < (o.quick ? 1 : 5); ++i) {
    const ps::simulated accelerator({.step = step, .bytes_per_second = 10e9});
    const std::uint64_t batches = o.quick ? 50 : 500;
    auto run = (ps::synthetic({.samples = 64 * batches,
                               .bytes = 100'000,
                               .cost = 50us,
                               .jitter = 0.5,
                               .tail_probability = 0.01,
                               .tail_factor = 20,
                               .wait = ps::synthetic_wait::sleep}) |
                ps::batch(64) | ps::prefetch(ahead) | ps::pin_and_copy(accelerator) | ps::workers(count))
                   .open();
    for (auto&& b : run) {
      bench::escape(b.device_data());
      accelerator.step();
    }
    stalls.push_back(100 * accelerator.stall());
  }
  bench::print_row(r, bench::quantile(stalls, 0.75), bench::quantile(stalls, 0.5),
                   std::to_string(step.count()) + " us a step, batch(64), prefetch(" + std::to_string(ahead) +
                       "), " + std::to_string(stalls.size()) + " runs");
}

/// Sleeps as long as a slow function would compute: on any number of processors.
float slow(std::uint64_t i) {
  std::this_thread::sleep_for(1ms);
  return static_cast<float>(i);
}

/// `open` opens a plan of batches of 64 slow samples for so many workers.
template <class Open>
void first_batch(const bench::options& o, const bench::row& r, unsigned workers, Open open) {
  if (!o.wants(r.id)) return;
  std::vector<double> ratios, times;
  for (int i = 0; i < (o.quick ? 1 : 11); ++i) {
    double begin = bench::seconds_now();
    for (std::uint64_t k = 0; k < 64; ++k) bench::escape((slow(k), &ratios));
    const double share = (bench::seconds_now() - begin) / workers;
    begin = bench::seconds_now();
    auto run = open(workers);
    if (!run.next()) throw std::runtime_error("there is no batch");
    times.push_back(bench::seconds_now() - begin);
    ratios.push_back(times.back() / share);
  }
  bench::print_row(r, bench::quantile(ratios, 0.75), bench::quantile(ratios, 0.5),
                   "first batch after " + bench::milliseconds(bench::quantile(times, 0.5)) + ", " +
                       std::to_string(ratios.size()) + " runs");
}

void measure(const bench::options& o) {
  // A sleep takes 60 us longer than requested, so a batch of 64 takes about 8 ms of one worker.
  one(o, {"14a", "stall of a simulated accelerator, 10 ms a step, 2 waiting workers, %", 0}, 10ms, 2, 8);
  one(o, {"14b", "the same, 4 ms a step, 4 workers, %", 0}, 4ms, 4, 8);
  one(o, {"14c", "the same, 4 ms a step, 4 workers, prefetch(2), %", 0}, 4ms, 4, 2);
  const auto numbers = ps::generated(1'000'000, slow) | ps::shuffle(ps::seed(1));
  const auto on = [&](unsigned workers) { return (numbers | ps::batch(64) | ps::workers(workers)).open(); };
  first_batch(o,
              {"14d", "time to the first batch(64) of 1 ms samples, 2 workers / 64 ms divided by 2", 2, true},
              2, on);
  first_batch(o, {"14e", "the same, 8 workers", 2, true}, 8, on);
  first_batch(o, {"14f", "the same, 2 workers, behind a filter", 2, true}, 2, [&](unsigned workers) {
    return (numbers | ps::filter([](float) { return true; }) | ps::batch(64) | ps::workers(workers)).open();
  });
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
