// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples of many MiB over a storage with latency: in parts, side by side, whoever reads them.

#include <penstock/core/error.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/tar_writer.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/held_storage.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock::literals;
using penstock_test::deadline;
using penstock_test::eventually;
using penstock_test::held_storage;

namespace fetching_large_test {

constexpr std::size_t payload = 64_MiB;

const std::vector<std::byte>& large_bytes() {
  static const std::vector<std::byte> made = [] {
    std::vector<std::byte> bytes(payload);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 31 + (i >> 16));
    return bytes;
  }();
  return made;
}
/// A shard of one sample of 64 MiB.
const ps::memory_files& shard() {
  static const ps::memory_files made = [] {
    std::vector<std::byte> bytes;
    bytes.reserve(payload + 10'000);
    ps::tar_writer out([&](ps::bytes_view more) { bytes.insert(bytes.end(), more.begin(), more.end()); });
    out.write("0", {{"bin", large_bytes()}});
    out.close();
    return ps::memory_files().add("a.tar", bytes);
  }();
  return made;
}
template <class Storage, class Setting>
auto plan(const Storage& where, const Setting& setting) {
  return ps::webdataset(where) | setting | ps::fields<"bin"> | ps::batch(1, ps::ragged) | ps::workers(1);
}
template <class Batch>
bool is_right(const Batch& b) {
  const auto bytes = ps::get<"bin">(b)[0];
  return bytes.size() == payload && std::memcmp(bytes.data(), large_bytes().data(), payload) == 0;
}

TEST_CASE("run/fetching_large: within a limit of memory, a worker reads a large sample in parts") {
  const deadline limit("a large sample in parts");
  // a quarter of it is for what is fetched ahead, which has no room for the sample
  const auto run = [](const auto& where, const auto& setting) {
    int batches = 0;
    for (auto&& b : (plan(where, setting)).epoch(0)) {
      CHECK(is_right(b));
      ++batches;
    }
    CHECK(batches == 1);
  };
  const ps::simulated_storage bounded(shard(), {.latency = 2ms}), unfetched(shard(), {.latency = 2ms});
  run(ps::retrying(bounded), ps::memory(256_MiB));
  CHECK(bounded.peak_in_flight() == 4);
  run(ps::retrying(unfetched), ps::prefetch(0));
  CHECK(unfetched.peak_in_flight() == 4);
}

TEST_CASE(
    "run/fetching_large: a part that fails is the run's error, with its place; a run that stops ends all") {
  const deadline limit("parts that fail");
  const held_storage far(shard());
  const auto loader = plan(ps::retrying(far, {.attempts = 1}), ps::memory(256_MiB));
  {
    auto run = loader.open();
    std::thread server([&] {
      eventually([&] { return far.reads->count() == 4; });
      const std::uint64_t second = far.reads->offsets()[1];
      CHECK(second == 512 + 16_MiB);
      far.reads->end(
          1, std::make_exception_ptr(ps::error(ps::errc::io, "broken").in_file("a.tar").at_offset(second)));
      far.reads->end_all();
    });
    try {
      for (auto&& b : run.epoch(0)) (void)b;
      FAIL("no error");
    } catch (const ps::error& e) {
      INFO(e.what());
      CHECK(e.offset() == 512 + 16_MiB);
      CHECK(e.file() == "a.tar");
    }
    server.join();
  }
  const std::size_t begun = far.reads->begun();
  {
    auto run = loader.open();
    (void)run.epoch(0);
    eventually([&] { return far.reads->count() == 4; });
  }
  CHECK(far.reads->count() == 0);
  CHECK(far.reads->begun() == begun + 4);
}

}  // namespace fetching_large_test
