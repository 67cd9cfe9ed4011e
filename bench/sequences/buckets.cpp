// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 42: padding of `bucket_by` beside Lhotse's DynamicBucketingSampler on the same lengths, with equal
// limits (42a to 42c, the first two with edges that each finds by itself, the last with the same edges), and
// opening at step 10,000 of an epoch of a million samples (42d). `buckets.py` is Lhotse's side: `--lengths
// FOLDER` writes the lengths for it.

#include "support/harness.hpp"
#include "support/program.hpp"

#include <penstock/core/random.hpp>
#include <penstock/order/sample_list.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/bucket_by.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

using lengths = std::vector<std::uint32_t>;

const auto itself = [](std::uint64_t i) { return i; };

/// As texts have them: the logarithm is nearly normal.
lengths like_texts(std::uint64_t count) {
  lengths all;
  for (std::uint64_t i = 0; i < count; ++i) {
    double normal = -6;
    ps::rng random(5, 0, i);
    for (int k = 0; k < 12; ++k) normal += random.uniform();
    all.push_back(static_cast<std::uint32_t>(std::clamp(std::exp(5.5 + 0.9 * normal), 1.0, 4096.0)));
  }
  return all;
}
lengths uniform(std::uint64_t count) {
  lengths all;
  for (std::uint64_t i = 0; i < count; ++i)
    all.push_back(static_cast<std::uint32_t>(1 + ps::rng(6, 0, i).below(2000)));
  return all;
}

/// The share of padding in an epoch's batches.
template <class Plan>
double padding_of(const Plan& plan, const lengths& all, std::uint64_t epoch) {
  auto run = plan.open();
  std::uint64_t tokens = 0, slots = 0;
  for (auto&& b : run.epoch(epoch)) {
    std::uint64_t longest = 0;
    for (const std::uint64_t sample : b.values()) {
      tokens += all[sample];
      longest = std::max<std::uint64_t>(longest, all[sample]);
    }
    slots += longest * b.size();
  }
  return 1 - static_cast<double>(tokens) / static_cast<double>(slots);
}

void padding(const char* name, const lengths& all, const ps::bucket_edges& edges) {
  const auto plan = ps::generated(all.size(), itself) | ps::shuffle(ps::seed(7)) |
                    ps::bucket_by(ps::sample_list(all), edges, {.max_tokens = 16'384}) | ps::workers(0);
  double sum = 0;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) sum += padding_of(plan, all, epoch);
  std::printf("%s: %.3f %% padding\n", name, sum / 3 * 100);
}

void opening(const lengths& all) {
  const auto plan = ps::generated(all.size(), itself) | ps::shuffle(ps::seed(7)) |
                    ps::bucket_by(ps::sample_list(all), 30, {.max_tokens = 16'384}) | ps::workers(0);
  ps::state where;
  {
    auto run = plan.open();
    std::uint64_t step = 0;
    auto epoch = run.epoch(0);
    for (auto it = epoch.begin(); step < 10'000 && it != epoch.end(); ++it) ++step;
    where = run.state();
  }
  std::vector<double> times, processor;
  for (int i = 0; i < 9; ++i) {
    const double start = bench::seconds_now();
    const std::clock_t busy = std::clock();
    const auto fresh = ps::generated(all.size(), itself) | ps::shuffle(ps::seed(7)) |
                       ps::bucket_by(ps::sample_list(all), 30, {.max_tokens = 16'384}) | ps::workers(0);
    auto run = fresh.open(where);
    auto b = run.next();
    bench::escape(b->values().data());
    times.push_back(bench::seconds_now() - start);
    processor.push_back(static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC);
  }
  std::printf(
      "42d: first batch at step %llu of an epoch of %zu samples: median %.1f ms, least %.1f ms; of a "
      "processor %.1f "
      "ms\n",
      static_cast<unsigned long long>(where.step), all.size(), bench::quantile(times, 0.5) * 1e3,
      bench::quantile(times, 0) * 1e3, bench::quantile(processor, 0.5) * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const lengths texts = like_texts(200'000), even = uniform(200'000);
  const std::string folder = argc > 2 ? argv[2] : "";
  const auto write = [&](const std::string& name, const lengths& all) {
    if (folder.empty()) return;
    std::ofstream file(folder + "/" + name);
    for (const std::uint32_t n : all) file << n << "\n";
  };
  write("texts", texts);
  write("uniform", even);
  padding("42a texts, 30 buckets", texts, 30);
  padding("42a texts, 30 buckets of least padding", texts, ps::least_padding(30));
  padding("42b uniform, 30 buckets", even, 30);
  padding("42b uniform, 30 buckets of least padding", even, ps::least_padding(30));
  padding("42c texts, edges 64 to 2048", texts, {64, 128, 256, 512, 1024, 2048});
  opening(like_texts(1'000'000));
}
