// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/cached.hpp>

#include <penstock/observe/timeline.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace ps = penstock;
using namespace ps::literals;

namespace cached_runs_test {

/// Four shards of 40 samples of different sizes.
std::string write_shards(const std::filesystem::path& folder) {
  ps::shard_writer out((folder / "a-%d.tar").string(), {.maxcount = 40});
  for (std::size_t i = 0; i < 160; ++i)
    out.write(std::to_string(i),
              {{"bin", std::string(20'000 + i % 13 * 999, static_cast<char>('a' + (i + i / 30) % 26))}});
  (void)out.close();
  return (folder / "a-{0..3}.tar").string();
}
template <class Source>
auto loader(const Source& source, std::size_t workers) {
  return source | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(8, ps::ragged) | ps::prefetch(2) |
         ps::workers(workers);
}
/// The bytes of a run's epochs up to the third, and the storage's counters.
template <class Run>
std::string rest_of(Run& run, ps::storage_counters* counted = nullptr) {
  std::string all;
  for (auto epoch : run.epochs(3))
    for (auto&& batch : epoch)
      for (std::size_t i = 0; i < batch.valid_size(); ++i)
        all.append(ps::text_of(ps::as_bytes(ps::get<"bin">(batch)[i]))).append("\n");
  if (counted != nullptr) *counted = run.counters().storage;
  return all;
}

TEST_CASE("storage/cached: runs have the samples of the files, from the first epoch on, and resume") {
  const penstock_test::temp_dir dir;
  const std::string pattern = write_shards(dir.path());
  std::string expected;
  {
    auto run = loader(ps::webdataset(pattern), 0).open();
    expected = rest_of(run);
  }
  const ps::simulated_storage far(ps::file(pattern), {.latency = std::chrono::microseconds(200)});
  for (const std::size_t workers : {0u, 1u, 2u, 7u}) {
    const ps::disk_cache near((dir.path() / ("cache-" + std::to_string(workers))).string(), 64_MiB,
                              {.block = 128_KiB});
    const auto plan = loader(ps::webdataset(ps::cached(far, near)), workers);
    ps::storage_counters counted;
    {
      auto run = plan.open();
      CHECK(rest_of(run, &counted) == expected);
    }
    CHECK(counted.fetched > 0);
    CHECK(counted.fetched * 128_KiB < 8_MiB);  // each block once, of 4 MB
    CHECK(counted.corrupt + counted.evicted + counted.uncached == 0);

    const std::uint64_t reads = far.reads();
    auto run = plan.open();
    std::string first;
    std::string state;
    std::size_t batches = 0;
    for (auto&& batch : run.epoch(0)) {
      for (std::size_t i = 0; i < batch.valid_size(); ++i)
        first.append(ps::text_of(ps::as_bytes(ps::get<"bin">(batch)[i]))).append("\n");
      if (++batches == 7) {
        state = to_string(run.state());
        break;
      }
    }
    auto resumed = plan.open(ps::state_from_string(state));
    CHECK(first + rest_of(resumed) == expected);
    CHECK(far.reads() == reads);
  }
}

TEST_CASE("storage/cached: a run with a cache that is too small has the same samples") {
  const penstock_test::temp_dir dir;
  const std::string pattern = write_shards(dir.path());
  std::string expected;
  {
    auto run = loader(ps::webdataset(pattern), 0).open();
    expected = rest_of(run);
  }
  const ps::disk_cache near((dir.path() / "cache").string(), 1_MiB, {.block = 128_KiB});
  auto run = loader(ps::webdataset(ps::cached(ps::file(pattern), near)), 2).open();
  ps::storage_counters counted;
  CHECK(rest_of(run, &counted) == expected);
  CHECK(counted.evicted > 100);
}

TEST_CASE("storage/cached: a timeline has the counts of a cache, and of files none") {
  const penstock_test::temp_dir dir;
  const std::string pattern = write_shards(dir.path());
  const ps::disk_cache near((dir.path() / "cache").string(), 1_MiB, {.block = 128_KiB});
  const std::string counts = "\"name\":\"cache\",\"ph\":\"C\"";
  for (const std::size_t workers : {0u, 2u}) {
    const ps::timeline files, trace;
    auto plain = (loader(ps::webdataset(pattern), workers) | files).open();
    (void)rest_of(plain);
    CHECK_THAT(files.json(), !penstock_test::contains(counts));
    auto run = (loader(ps::webdataset(ps::cached(ps::file(pattern), near)), workers) | trace).open();
    (void)rest_of(run);
    CHECK_THAT(trace.json(), penstock_test::contains(counts) && penstock_test::contains("\"hits\":"));
  }
}

}  // namespace cached_runs_test
