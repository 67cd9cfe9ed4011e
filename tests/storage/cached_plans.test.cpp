// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of many kinds over a cache that has room for a part of what they read.

#include <penstock/storage/cached.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/shard_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/steps.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/disk_cache.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/memory_cache.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/temp_dir.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace ps::literals;

namespace cached_plans_test {

std::string write_shards(const std::filesystem::path& folder, const std::string& name) {
  ps::shard_writer out((folder / (name + "-%d.tar")).string(), {.maxcount = 40});
  for (std::size_t i = 0; i < 160; ++i)
    out.write(std::to_string(i),
              {{"bin", std::string(20'000 + i % 13 * 999, static_cast<char>('a' + (i + i / 30) % 26))}});
  (void)out.close();
  return (folder / (name + "-{0..3}.tar")).string();
}

template <class Loop>
void add_to(std::string& all, Loop&& loop) {
  for (auto&& batch : loop) {
    for (std::size_t i = 0; i < batch.valid_size(); ++i) {
      const auto bytes = ps::text_of(ps::as_bytes(ps::get<"bin">(batch)[i]));
      all.append(bytes.substr(0, 1)).append(std::to_string(bytes.size())).append("\n");
    }
    all.append("\n");
  }
}
/// What a run reads that stops in the middle, jumps, goes on, and is told how many epochs there are.
template <class Plan>
std::string walk(const Plan& plan) {
  std::string all;
  auto run = plan.open();
  std::size_t batches = 0;
  for (auto&& batch : run.epoch(0)) {
    all.append(std::to_string(batch.valid_size())).append("\n");
    if (++batches == 3) break;
  }
  const std::string saved = to_string(run.state());
  add_to(all, run.epoch(2));
  add_to(all, run.epoch(1));
  for (auto epoch : run.epochs(3)) add_to(all, epoch);
  for (auto epoch : run.epochs(4)) add_to(all, epoch);
  auto resumed = plan.open(ps::state_from_string(saved));
  for (auto epoch : resumed.epochs(2)) add_to(all, epoch);
  return all;
}
/// The same samples as from the files, from a folder with room for a quarter, and through memory over it.
template <class Loader>
void compare(const char* what, const Loader& loader) {
  INFO(what);
  const penstock_test::deadline guard(what);
  const penstock_test::temp_dir dir;
  const std::string one = write_shards(dir.path(), "a"), other = write_shards(dir.path(), "b");
  const auto from = [&](const auto& make) {
    return walk(loader(ps::webdataset(make(one)), ps::webdataset(make(other))) | ps::workers(2));
  };
  const std::string expected = from([](const std::string& pattern) { return ps::file(pattern); });
  REQUIRE(expected.size() > 1000);
  const ps::disk_cache near((dir.path() / "cache").string(), 1_MiB, {.block = 128_KiB, .ahead = 2});
  const auto cached = [&](const std::string& pattern) { return ps::cached(ps::file(pattern), near); };
  CHECK(from(cached) == expected);
  const ps::memory_cache nearer(512_KiB, {.block = 64_KiB});
  CHECK(from([&](const std::string& pattern) { return ps::cached(cached(pattern), nearer); }) == expected);
}

TEST_CASE("storage/cached: plans that choose and mix samples have the same ones with a small cache") {
  compare("filter", [](const auto& one, const auto&) {
    return one | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::filter([](const auto& sample) {
             return ps::as_bytes(ps::get<"bin">(sample)).size() % 2 == 0;
           }) |
           ps::batch(8, ps::ragged) | ps::prefetch(2);
  });
  compare("shuffle_buffer", [](const auto& one, const auto&) {
    return one | ps::shard(0, 2) | ps::shuffle_buffer(30, ps::seed(5)) | ps::fields<"bin"> |
           ps::prefetch(16) | ps::batch(8, ps::ragged) | ps::prefetch(2);
  });
  compare("batch_by", [](const auto& one, const auto&) {
    return one | ps::shuffle(ps::seed(7)) | ps::shard(1, 2) | ps::fields<"bin"> | ps::prefetch(16) |
           ps::batch_by([](std::uint64_t sample) { return sample % 5 + 1; }, 20, ps::ragged) |
           ps::prefetch(2);
  });
}

TEST_CASE("storage/cached: plans of several sources have the same samples with a small cache") {
  compare("mix", [](const auto& one, const auto& other) {
    return ps::mix(ps::weights{0.7, 0.3}, one | ps::shuffle(ps::seed(7)) | ps::fields<"bin">,
                   other | ps::shuffle(ps::seed(8)) | ps::fields<"bin">) |
           ps::batch(8, ps::ragged) | ps::prefetch(2);
  });
  compare("concat", [](const auto& one, const auto& other) {
    return ps::concat(one | ps::fields<"bin">, other | ps::fields<"bin">) | ps::shuffle(ps::seed(5)) |
           ps::batch(8, ps::ragged) | ps::prefetch(2);
  });
  compare("steps", [](const auto& one, const auto&) {
    return one | ps::shuffle(ps::seed(7)) | ps::fields<"bin"> | ps::batch(8, ps::ragged) | ps::steps(13) |
           ps::prefetch(2);
  });
}

TEST_CASE("storage/cached: runs end early, while they look ahead") {
  const penstock_test::deadline guard("end early");
  const penstock_test::temp_dir dir;
  const std::string pattern = write_shards(dir.path(), "a");
  const ps::disk_cache near((dir.path() / "cache").string(), 1_MiB, {.block = 128_KiB});
  const auto plan = ps::webdataset(ps::cached(ps::file(pattern), near)) | ps::shuffle(ps::seed(7)) |
                    ps::fields<"bin"> | ps::batch(8, ps::ragged) | ps::prefetch(2) | ps::workers(2);
  for (std::size_t batches = 0; batches < 12; ++batches) {
    auto run = plan.open();
    std::size_t left = batches;
    if (batches % 3 == 2) {
      std::jthread stops([&] { run.request_stop(); });
      for (auto&& batch : run.epoch(batches)) (void)batch;
    } else if (batches != 0) {
      for (auto&& batch : run.epoch(batches)) {
        (void)batch;
        if (--left == 0) break;
      }
    }
  }
  std::vector<decltype(plan.open())> many;
  for (int i = 0; i < 8; ++i) {
    auto& run = many.emplace_back(plan.open());
    for (auto&& batch : run.epoch(0)) {
      (void)batch;
      break;
    }
  }
}

}  // namespace cached_plans_test
