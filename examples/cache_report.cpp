// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a cache that is smaller than the data keeps. Runs epochs over shards through `cached`, each in a new
// shuffle: once with an eviction that knows what the run will read, once with the block that was used longest
// ago going first. Meanwhile it looks at the run's counters and at the cache's folder, and draws both.
//
//     cache_report                                     makes shards of 2048 samples
//     cache_report --shards 'train-*.tar' --cache 0.25 --block-kib 1024 --out report.svg
//
// Shards of a file system stand for those of a store. The folders of the caches are temporary; --scratch says
// where they are made.

#include "arguments.hpp"
#include "line_chart.hpp"
#include "temporary_folder.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/core/random.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/cached.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/file_writer.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

struct settings {
  std::string shards;
  std::uint64_t limit = 0, block = 0;  // bytes, of the cache and of its blocks
  std::uint64_t epochs = 4;
  unsigned workers = 2;
  std::chrono::microseconds step{2000};  // of training, for each batch
};

/// Samples of 32 KiB, in shards of 64.
std::string make_shards(const fs::path& folder, std::uint64_t samples) {
  ps::shard_writer out((folder / "made-%04d.tar").string(), {.maxcount = 64, .tar = {.index = true}});
  std::vector<std::uint64_t> words(32 * 1024 / sizeof(std::uint64_t));
  for (std::uint64_t i = 0; i < samples; ++i) {
    for (std::size_t w = 0; w < words.size(); ++w) words[w] = ps::mix64(i * words.size() + w);
    out.write(std::to_string(i), {{"bin", std::as_bytes(std::span(words))}});
  }
  out.close();
  return (folder / "made-*.tar").string();
}

/// Reads all members.
constexpr auto bytes_of_sample = [](const auto& sample) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const auto member = sample.member(i);
    bytes += member.finish().size();
  }
  return bytes;
};

/// What the files in a folder take of the disk, of which some may be sparse.
std::uint64_t on_disk(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    struct stat found {};
    if (::stat(entry.path().c_str(), &found) == 0) bytes += static_cast<std::uint64_t>(found.st_blocks) * 512;
  }
  return bytes;
}

struct moment {
  double epoch = 0;
  ps::storage_counters storage;
  std::uint64_t disk = 0;
};

/// Runs the epochs through a new cache, and looks at it some 128 times in each.
std::vector<moment> watch(const settings& how, const ps::manifest& data, const fs::path& folder,
                          ps::eviction evict) {
  constexpr std::uint64_t batch = 16, looks = 128;
  // Nothing is fetched before it is asked for, so that a read is either a hit or a fetch.
  const ps::disk_cache near(folder.string(), how.limit, {.block = how.block, .evict = evict, .ahead = 0});
  const auto plan = ps::webdataset(ps::cached(ps::file(how.shards), near), data) | ps::shuffle(ps::seed(7)) |
                    ps::map(bytes_of_sample) | ps::prefetch(2 * batch) | ps::batch(batch) | ps::prefetch(2) |
                    ps::workers(how.workers);
  auto run = plan.open();
  const std::uint64_t stride = std::max<std::uint64_t>(1, data.samples() / batch / looks);
  const auto look = [&](std::uint64_t samples) {
    return moment{static_cast<double>(samples) / static_cast<double>(data.samples()), run.counters().storage,
                  on_disk(folder)};
  };
  std::vector<moment> seen{look(0)};
  std::uint64_t samples = 0, batches = 0;
  for (auto epoch : run.epochs(how.epochs))
    for (auto&& b : epoch) {
      std::this_thread::sleep_for(how.step);
      samples += b.size();
      if (++batches % stride == 0 || samples % data.samples() == 0) seen.push_back(look(samples));
    }
  return seen;
}

std::uint64_t reads(const moment& m) { return m.storage.hits + m.storage.fetched + m.storage.uncached; }

/// The hits among the reads between two moments, in percent.
double hit_rate(const moment& before, const moment& now) {
  const std::uint64_t all = reads(now) - reads(before);
  return all == 0
             ? 0
             : 100 * static_cast<double>(now.storage.hits - before.storage.hits) / static_cast<double>(all);
}

/// At each moment the rate of the eighth of an epoch before it, over which single reads even out.
line_chart::points hit_rates(const std::vector<moment>& seen) {
  line_chart::points rates;
  std::size_t before = 0;
  for (std::size_t i = 1; i < seen.size(); ++i) {
    while (seen[before + 1].epoch <= seen[i].epoch - 0.125) ++before;
    if (reads(seen[i]) != reads(seen[before]))
      rates.emplace_back(seen[i].epoch, hit_rate(seen[before], seen[i]));
  }
  return rates;
}

double largest(const line_chart::points& all) {
  return std::max_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.second < b.second; })
      ->second;
}

std::string with_digit(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  return digits;
}

std::string report(const settings& how, const ps::manifest& data, const fs::path& scratch) {
  const bool large = how.limit >= std::uint64_t{1} << 32;
  const double unit = large ? 1 << 30 : 1 << 20;
  const std::string unit_name = large ? "GiB" : "MiB";
  const auto in_units = [&](std::uint64_t bytes) { return static_cast<double>(bytes) / unit; };

  const std::vector<std::pair<std::string, ps::eviction>> policies = {{"belady", ps::eviction::belady},
                                                                      {"lru", ps::eviction::lru}};
  std::vector<line_chart::points> rates, disks;
  for (const auto& [name, evict] : policies) {
    const std::vector<moment> seen = watch(how, data, scratch / name, evict);
    rates.push_back(hit_rates(seen));
    line_chart::points& disk = disks.emplace_back();
    for (const moment& m : seen) disk.emplace_back(m.epoch, in_units(m.disk));
    const auto second = std::find_if(seen.begin(), seen.end(), [](const moment& m) { return m.epoch >= 1; });
    const ps::storage_counters& all = seen.back().storage;
    std::printf(
        "%s: %.1f %% of the reads were hits from the second epoch on; %llu blocks fetched, %llu evicted; "
        "at most %.1f %s on the disk\n",
        name.c_str(), hit_rate(*second, seen.back()), static_cast<unsigned long long>(all.fetched),
        static_cast<unsigned long long>(all.evicted), largest(disk), unit_name.c_str());
  }

  const double limit = in_units(how.limit);
  line_chart chart("A cache of " + with_digit(limit) + " " + unit_name + " for " +
                       with_digit(in_units(data.bytes())) + " " + unit_name + " of shards",
                   std::to_string(data.samples()) + " samples, in a new shuffle in each epoch; blocks of " +
                       std::to_string(how.block / 1024) + " KiB",
                   "epochs", static_cast<double>(how.epochs));
  chart.panel("Hit rate, % of the reads in the last eighth of an epoch", 100);
  for (auto& one : rates) chart.line(std::move(one));
  chart.panel("The cache on the disk, " + unit_name,
              1.2 * std::max({limit, largest(disks[0]), largest(disks[1])}));
  chart.level(limit, "its limit, " + with_digit(limit) + " " + unit_name);
  for (auto& one : disks) chart.line(std::move(one));
  return chart.svg({"eviction::" + policies[0].first, "eviction::" + policies[1].first});
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "cache_report [--out cache_report.svg] [--shards PATTERN | --samples 2048] [--cache 0.5] "
        "[--block-kib 128] [--epochs 4] [--workers 2] [--step-us 2000] [--scratch FOLDER]\n"
        "--cache is the share of the data that the cache may have";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    if (given.has("shards") && given.has("samples"))
      throw std::runtime_error("give --shards, or --samples to have some made");
    settings how;
    how.shards = given.text("shards", "");
    const std::string out = given.text("out", "cache_report.svg");
    const std::uint64_t samples = given.number("samples", 2048, 1 << 20);
    const double share = given.share("cache", 0.5);
    how.block = given.number("block-kib", 128, 1 << 20) * 1024;
    how.epochs = given.number("epochs", 4, 1000);
    how.workers = static_cast<unsigned>(given.number("workers", 2, max_workers));
    how.step = std::chrono::microseconds(given.number("step-us", 2000, 60'000'000));
    const fs::path place = given.text("scratch", fs::temp_directory_path().string());
    given.done();
    if (how.epochs < 2)
      throw std::runtime_error("give at least 2 --epochs: in the first one every block is new");
    if (samples == 0) throw std::runtime_error("give at least 1 of --samples");

    ps::file_writer picture;
    picture.open(out);  // before the work, so that a name that cannot be written costs none
    const temporary_folder scratch("cache_report", place);
    if (how.shards.empty()) how.shards = make_shards(scratch.path(), samples);
    const ps::manifest data = ps::webdataset(how.shards).manifest();
    how.limit = static_cast<std::uint64_t>(share * static_cast<double>(data.bytes()));
    picture.write(ps::bytes_of(report(how, data, scratch.path())));
    picture.finish();
    std::printf("%s\n", out.c_str());
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cache_report: %s\n", e.what());
    return 1;
  }
}
