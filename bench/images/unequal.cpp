// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 21f: a large photo among thumbnails. One image in a hundred has fifty times the pixels of the others; a
// simulated accelerator must wait no longer for them than for images of equal size with the same work in all.
// The accelerator's step is set so that two workers are busy for 70 % of it.

#include "support/harness.hpp"
#include "support/made_photos.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/device/simulated.hpp>
#include <penstock/image.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr unsigned threads = 2;
constexpr std::uint32_t thumbnail = 128;
constexpr double times_as_many = 50;
constexpr std::size_t batch_size = 64, one_in = 100;
constexpr std::uint64_t ahead = 2;  // batches

/// A square of so many times the pixels of a thumbnail.
ps::image_size square(double times) {
  const auto side = static_cast<std::uint32_t>(std::lround(thumbnail * std::sqrt(times)));
  return {side, side};
}

auto plan_of(const ps::memory_files& photos) {
  return ps::webdataset(photos) | ps::fields<"jpg"> | ps::decode<ps::field<"jpg", ps::jpeg>> |
         ps::map<"jpg">(ps::resize(64, 64), ps::normalize(ps::imagenet), ps::to_chw()) |
         ps::batch(batch_size, ps::tail::drop) | ps::prefetch(ahead) | ps::workers(threads);
}

/// The seconds that one worker works on an image, on average.
double work_of(const ps::memory_files& photos) {
  auto run = (plan_of(photos) | ps::workers(1)).open();
  double best = 1;
  for (std::uint64_t e = 0; e < 3; ++e) {
    const double before = run.counters().worker_busy_seconds;
    std::uint64_t images = 0;
    for (auto&& b : run.epoch(e)) images += b.size();
    best = std::min(best, (run.counters().worker_busy_seconds - before) / static_cast<double>(images));
  }
  return best;
}

/// How much of an epoch a simulated accelerator waits.
double stall_of(const ps::memory_files& photos, std::chrono::microseconds step) {
  const ps::simulated accelerator({.step = step});
  auto run = plan_of(photos).open();
  for (auto&& b : run.epoch(0)) {
    bench::escape(ps::get<"jpg">(b).data());
    accelerator.step();
  }
  return accelerator.stall();
}

void measure(const bench::options& o) {
  const bench::row row{"21f", "use of an accelerator, one photo of 50 times the size in 100 / equal photos",
                       0.98};
  if (!o.wants(row.id)) return;
  const std::size_t count = batch_size * (o.quick ? 25 : 100);
  const double all = (one_in - 1 + times_as_many) / one_in;
  const ps::memory_files unequal = bench::made_photos(
      count, [](std::size_t i) { return square(i % one_in == one_in / 2 ? times_as_many : 1); });
  const ps::memory_files equal = bench::made_photos(count, [&](std::size_t) { return square(all); });
  const double of_unequal = work_of(unequal), of_equal = work_of(equal);
  const auto step = std::chrono::microseconds(
      std::llround(1e6 * std::max(of_unequal, of_equal) * batch_size / threads / 0.7));
  std::vector<double> ratios, ours, theirs;
  for (int pair = 0; pair < (o.quick ? 1 : 7); ++pair) {
    ours.push_back(100 * stall_of(unequal, step));
    theirs.push_back(100 * stall_of(equal, step));
    ratios.push_back((100 - ours.back()) / (100 - theirs.back()));
  }
  char notes[160];
  std::snprintf(
      notes, sizeof notes,
      "stall %.2g %%, equal photos %.2g %%; %.3g ms a step, 2 workers, prefetch(2); work %.3g and %.3g us "
      "an image",
      bench::quantile(ours, 0.5), bench::quantile(theirs, 0.5), static_cast<double>(step.count()) * 1e-3,
      of_unequal * 1e6, of_equal * 1e6);
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
