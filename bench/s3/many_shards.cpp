// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 23j: what is asked of a store between opening a dataset of 10,000 shards, whose indexes are kept in a
// local folder, and its first batch.
#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/listed_store.hpp"

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/s3.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace ps = penstock;

constexpr std::uint64_t samples_each = 16, batch = 64;
constexpr std::size_t sample_bytes = 1024;
constexpr std::chrono::milliseconds latency{20};

struct start {
  double seconds = 0;
  bench::listed_store::counts asked;
};

start first_batch(const bench::listed_store& store, const ps::s3& shards, const std::string& indexes) {
  const auto before = store.counted();
  const double begin = bench::seconds_now();
  auto run = (ps::webdataset(shards, {.index_folder = indexes}) | ps::shuffle(ps::seed(7)) |
              ps::fields<"bin"> | ps::prefetch(0) | ps::batch(batch) | ps::prefetch(1) | ps::workers(8))
                 .open();
  for (auto&& b : run) {
    const auto asked = store.counted();
    const double seconds = bench::seconds_now() - begin;
    if (b.size() != batch) throw std::runtime_error("row 23j: the first batch is not full");
    return {seconds,
            {asked.lists - before.lists, asked.heads - before.heads, asked.reads - before.reads,
             asked.missing - before.missing}};
  }
  throw std::runtime_error("row 23j: there is no batch");
}

void measure(const bench::options& o) {
  const std::uint64_t count = o.quick ? 1'000 : 10'000;
  const bench::row row{"23j",
                       "s3: " + std::to_string(count) +
                           " shards, kept indexes: requests from opening to the first batch / pages of one "
                           "list and its samples' reads",
                       1, true};
  if (!o.wants(row.id)) return;
  const bench::folder folder(o, "s3_many_shards");
  const std::string one = bench::write_shards(folder, 1, samples_each, sample_bytes, false).front();
  std::ifstream in(one, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::set<std::string> keys;
  std::vector<std::string> names;
  for (std::uint64_t i = 0; i < count; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "s%05d.tar", static_cast<int>(i));
    keys.insert(name);
    names.push_back("bench/" + std::string(name));
  }
  bench::listed_store store(keys, bytes);
  const ps::s3 shards(names, {.place = {.region = "us-east-1", .endpoint = store.endpoint()},
                              .identity = {.credentials = ps::s3_credentials("key", "secret")},
                              .connection = {.proxies = false, .hedges = {.max_extra_requests = 0}}});
  const std::string indexes = folder.file("indexes");
  (void)ps::webdataset(shards, {.index_folder = indexes});
  const auto first = store.counted();

  store.set_latency(latency);
  const std::uint64_t pages = count / 1000;
  std::vector<double> ratios, times;
  start last;
  for (int i = 0; i < (o.quick ? 1 : 5); ++i) {
    last = first_batch(store, shards, indexes);
    // Workers have begun further batches, each of whose samples is one read.
    const std::uint64_t reads = std::max(last.asked.reads, batch);
    ratios.push_back(static_cast<double>(last.asked.all()) / static_cast<double>(pages + reads));
    times.push_back(last.seconds);
  }
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%llu lists, %llu HEAD, %llu missing, %llu reads; %s at %d ms of latency; without indexes: "
      "%llu lists, %llu HEAD, %llu missing, %llu reads",
      static_cast<unsigned long long>(last.asked.lists), static_cast<unsigned long long>(last.asked.heads),
      static_cast<unsigned long long>(last.asked.missing), static_cast<unsigned long long>(last.asked.reads),
      bench::milliseconds(bench::quantile(times, 0.5)).c_str(), static_cast<int>(latency.count()),
      static_cast<unsigned long long>(first.lists), static_cast<unsigned long long>(first.heads),
      static_cast<unsigned long long>(first.missing), static_cast<unsigned long long>(first.reads));
  bench::print_row(row, bench::quantile(ratios, 0.75), bench::quantile(ratios, 0.5), text);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
