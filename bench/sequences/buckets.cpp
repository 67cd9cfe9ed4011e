// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 42: padding of `bucket_by` beside Lhotse's DynamicBucketingSampler on the same lengths, with equal
// limits (42a and 42b, each with edges that it finds by itself; 42c, the same edges), and opening at step
// 10,000 of an epoch of a million samples (42d). Lhotse is peer_buckets.py in $BENCH_SEQUENCES_SCRIPTS with
// $BENCH_LHOTSE_PYTHON.

#include "sequences/peers.hpp"
#include "support/harness.hpp"

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
#include <ctime>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

using bench::lengths, bench::number;

constexpr std::uint64_t most_tokens = 16'384;

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

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The padding of each epoch, in percent.
std::vector<double> padding_of(const lengths& all, const ps::bucket_edges& edges, std::uint64_t epochs) {
  const auto plan = ps::generated(all.size(), itself) | ps::shuffle(ps::seed(7)) |
                    ps::bucket_by(ps::sample_list(all), edges, {.max_tokens = most_tokens}) | ps::workers(0);
  auto run = plan.open();
  std::vector<double> found;
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    std::uint64_t tokens = 0, slots = 0;
    for (auto&& b : run.epoch(epoch)) {
      std::uint64_t longest = 0;
      for (const std::uint64_t sample : b.values()) {
        tokens += all[sample];
        longest = std::max<std::uint64_t>(longest, all[sample]);
      }
      slots += longest * b.size();
    }
    found.push_back(100 * (1 - static_cast<double>(tokens) / static_cast<double>(slots)));
  }
  return found;
}

/// A line for each epoch: the padding, and how many batches are above the limit, both in percent.
bench::lines lhotse(const bench::options& o, const lengths& all, const std::string& buckets,
                    std::uint64_t epochs) {
  const std::string python = bench::setting("BENCH_LHOTSE_PYTHON"),
                    folder = bench::setting("BENCH_SEQUENCES_SCRIPTS");
  if (python.empty() || folder.empty()) return {};
  const std::filesystem::path file = bench::written(o, "bucketed.u32", all);
  const bench::lines found =
      bench::lines_of(bench::quoted(python) + " " + bench::quoted(folder + "/peer_buckets.py") + " " +
                      bench::quoted(file.string()) + " " + std::to_string(most_tokens) + " " +
                      std::to_string(epochs) + " " + buckets);
  if (!o.keep) std::filesystem::remove(file);
  return found;
}

/// `buckets` says the same as `edges` to the peer.
void padding(const bench::options& o, const bench::row& r, const lengths& all, const ps::bucket_edges& edges,
             const std::string& buckets, bool fewest_too) {
  if (!o.wants(r.id)) return;
  const std::uint64_t epochs = o.quick ? 1 : 5;
  const std::vector<double> ours = padding_of(all, edges, epochs);
  std::string notes = number(mean(ours)) + " %";
  if (fewest_too)
    notes +=
        ", with least_padding(30) " + number(mean(padding_of(all, ps::least_padding(30), epochs))) + " %";
  std::vector<double> theirs, above;
  for (const auto& [padded, over] : lhotse(o, all, buckets, epochs)) {
    theirs.push_back(padded);
    above.push_back(over);
  }
  if (theirs.size() != epochs) return bench::print_skipped(r, "there is no Lhotse; padding " + notes);
  const double ratio = mean(ours) / mean(theirs);
  bench::print_row(r, ratio, ratio,
                   "padding " + notes + ", Lhotse " + number(mean(theirs)) + " %, and " +
                       number(mean(above)) + " % of its batches above the limit; " +
                       std::to_string(all.size()) + " samples, " + std::to_string(epochs) +
                       (epochs == 1 ? " epoch" : " epochs"));
}

void opening(const bench::options& o) {
  const bench::row r{"42d", "first batch at step 10,000 of an epoch of 1 million samples, ms", 80, true};
  if (!o.wants(r.id)) return;
  const lengths all = like_texts(1'000'000);
  const auto plan = [&] {
    return ps::generated(all.size(), itself) | ps::shuffle(ps::seed(7)) |
           ps::bucket_by(ps::sample_list(all), 30, {.max_tokens = most_tokens}) | ps::workers(0);
  };
  ps::state where;
  {
    auto run = plan().open();
    for (int step = 0; step < 10'000; ++step) static_cast<void>(run.next());
    where = run.state();
  }
  std::vector<double> times, processor;
  for (int i = 0; i < o.pairs; ++i) {
    double least = 1e300, least_busy = 1e300;
    for (int take = 0; take < o.takes; ++take) {
      const double start = bench::seconds_now();
      const std::clock_t busy = std::clock();
      auto run = plan().open(where);
      auto b = run.next();
      bench::escape(b->values().data());
      least = std::min(least, 1e3 * (bench::seconds_now() - start));
      least_busy = std::min(least_busy, 1e3 * static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC);
    }
    times.push_back(least);
    processor.push_back(least_busy);
  }
  bench::print_row(r, bench::quantile(times, 0.75), bench::quantile(times, 0.5),
                   "processor time " + number(bench::quantile(processor, 0.5)) + " ms, " +
                       std::to_string(o.pairs) + " times, the fastest of " + std::to_string(o.takes) +
                       " takes each");
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_main(argc, argv, [](const bench::options& o) {
    const std::uint64_t samples = o.quick ? 20'000 : 200'000;
    const lengths texts = like_texts(samples), even = uniform(samples);
    padding(o, {"42a", "padding / Lhotse's: lengths as of texts, 30 buckets", 1, true}, texts, 30, "30",
            true);
    padding(o, {"42b", "padding / Lhotse's: lengths uniform in 1..2,000, 30 buckets", 1, true}, even, 30,
            "30", true);
    // A length that equals an edge belongs below it here, and above it there.
    padding(o, {"42c", "padding / Lhotse's: lengths as of texts, edges 64 to 2,048", 1, true}, texts,
            {64, 128, 256, 512, 1024, 2048}, "64.5 128.5 256.5 512.5 1024.5 2048.5", false);
    opening(o);
  });
}
