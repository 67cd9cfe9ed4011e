// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 21g: a thread that launches kernels, beside workers that decode photos on all processors. A launch is
// 100 us of computing, one after another; it takes longer where a worker has the processor. Workers are bound
// to all processors but the first and give way (`nice` 19), or neither. The row is the launches per second
// with the options, divided by those without.

#include "support/harness.hpp"
#include "support/made_photos.hpp"

#include <penstock/codec/jpeg.hpp>
#include <penstock/image.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 8;

auto plan_of(const ps::memory_files& photos, const ps::workers_stage& how) {
  return ps::webdataset(photos) | ps::fields<"jpg"> | ps::decode<ps::field<"jpg", ps::jpeg>> |
         ps::map<"jpg">(ps::random_resized_crop(224), ps::horizontal_flip(), ps::normalize(ps::imagenet),
                        ps::to_chw(), ps::key("crop")) |
         ps::seed(7) | ps::batch(batch_size, ps::tail::drop) | how;
}

/// Work of a fixed amount.
std::uint64_t compute(std::uint64_t rounds) {
  std::uint64_t x = rounds;
  for (std::uint64_t i = 0; i < rounds; ++i) x = ps::mix64(x);
  return x;
}
/// The rounds of 100 us.
std::uint64_t rounds_of_a_launch() {
  constexpr std::uint64_t rounds = 100'000;
  double best = 1;
  for (int i = 0; i < 20; ++i) {
    const double begin = bench::seconds_now();
    const std::uint64_t sum = compute(rounds);
    bench::escape(&sum);
    best = std::min(best, bench::seconds_now() - begin);
  }
  return static_cast<std::uint64_t>(1e-4 / best * static_cast<double>(rounds));
}

struct figures {
  double launches = 0, images = 0, slow_launch = 0;  ///< per second; the 99th percentile of their seconds
};

/// Launches for so long, while another thread takes all batches of a run.
template <class Plan>
figures launch_beside(const Plan& plan, std::uint64_t rounds, double seconds) {
  auto run = plan.open();
  std::atomic<bool> ends{false};
  std::atomic<std::uint64_t> images{0};
  std::thread consumer([&] {
    for (std::uint64_t e = 0; !ends; ++e)
      for (auto&& b : run.epoch(e)) {
        bench::escape(ps::get<"jpg">(b).data());
        images += b.size();
        if (ends) break;
      }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<double> each;
  const std::uint64_t images_before = images;
  const double begin = bench::seconds_now();
  double now = begin;
  while (now - begin < seconds) {
    const std::uint64_t sum = compute(rounds);
    bench::escape(&sum);
    const double after = bench::seconds_now();
    each.push_back(after - now);
    now = after;
  }
  figures f;
  f.launches = static_cast<double>(each.size()) / (now - begin);
  f.images = static_cast<double>(images - images_before) / (now - begin);
  f.slow_launch = bench::quantile(each, 0.99);
  ends = true;
  consumer.join();
  return f;
}

void measure(const bench::options& o) {
  const bench::row row{"21g", "launches beside workers that are bound and niced / beside workers(n)", 1.0};
  if (!o.wants(row.id)) return;
  const unsigned count = ps::usable_processors();
  ps::processor_set others;
  const ps::processor_set all = ps::allowed_processors();
  unsigned first = 0;
  while (!all.contains(first)) ++first;
  for (unsigned i = first + 1; i < ps::processor_set::max_processors; ++i)
    if (all.contains(i)) others.add(i);
  const ps::memory_files photos = bench::made_photos(64, [](std::size_t) {
    return ps::image_size{500, 375};
  });
  const auto with = plan_of(photos, ps::workers(count, {.processors = others, .nice = 19}));
  const auto without = plan_of(photos, ps::workers(count));
  const std::uint64_t rounds = rounds_of_a_launch();
  std::vector<double> ratios;
  std::vector<figures> ours, theirs;
  for (int pair = 0; pair < (o.quick ? 1 : 11); ++pair) {
    ours.push_back(launch_beside(with, rounds, o.quick ? 0.1 : 0.5));
    theirs.push_back(launch_beside(without, rounds, o.quick ? 0.1 : 0.5));
    ratios.push_back(ours.back().launches / theirs.back().launches);
  }
  const auto middle = [](const std::vector<figures>& from_all, double figures::*which) {
    std::vector<double> values;
    for (const figures& f : from_all) values.push_back(f.*which);
    return bench::quantile(values, 0.5);
  };
  char notes[200];
  std::snprintf(
      notes, sizeof notes,
      "%u workers; %.0f launches/s against %.0f, 99th percentile %s against %s, %.0f images/s against %.0f",
      count, middle(ours, &figures::launches), middle(theirs, &figures::launches),
      bench::milliseconds(middle(ours, &figures::slow_launch)).c_str(),
      bench::milliseconds(middle(theirs, &figures::slow_launch)).c_str(), middle(ours, &figures::images),
      middle(theirs, &figures::images));
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
