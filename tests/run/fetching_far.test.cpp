// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What runs over a storage with latency request: how much, in what order, and within which memory.

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>
#include <penstock/observe/timeline.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/npy_rows.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/memory.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/watchdog.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>
#include <penstock/storage/simulated_storage.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace std::chrono_literals;
using namespace penstock::literals;

namespace fetching_far_test {

template <std::size_t Bytes>
ps::memory_files rows(std::size_t count) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(count) + ", " +
                       std::to_string(Bytes) + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string all = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  ps::rng random(count, Bytes, 1);
  for (std::size_t i = 0; i < count * Bytes; i += 8) {
    const std::uint64_t word = random();
    all.append(reinterpret_cast<const char*>(&word), std::min<std::size_t>(8, count * Bytes - i));
  }
  return ps::memory_files().add("rows.npy", all);
}

/// Files with latency, whose background reads end only when cancelled.
struct silent_storage {
  struct reads {
    std::mutex busy;
    std::vector<std::pair<ps::read_listener, std::uint64_t>> waiting;
    std::size_t given = 0;

    [[nodiscard]] std::size_t begun() {
      const std::scoped_lock lock(busy);
      return given;
    }
    [[nodiscard]] std::size_t in_flight() {
      const std::scoped_lock lock(busy);
      return waiting.size();
    }
  };
  ps::memory_files files;
  std::shared_ptr<reads> kept = std::make_shared<reads>();

  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {.latency = true};
    std::shared_ptr<reads> kept;
    session(ps::memory_files::session good, std::shared_ptr<reads> all)
        : ps::memory_files::session(std::move(good)), kept(std::move(all)) {}
    void read_many(std::span<const ps::read_request> requests, ps::read_listener who) const {
      const std::scoped_lock lock(kept->busy);
      kept->given += requests.size();
      for (const auto& one : requests) kept->waiting.emplace_back(who, one.tag);
    }
    void cancel() const noexcept {
      std::vector<std::pair<ps::read_listener, std::uint64_t>> all;
      {
        const std::scoped_lock lock(kept->busy);
        all.swap(kept->waiting);
      }
      for (const auto& [who, tag] : all)
        who.done(who.self, tag, std::make_exception_ptr(ps::error(ps::errc::stopped, "cancelled")));
    }
  };
  [[nodiscard]] std::span<const std::string> names() const { return files.names(); }
  [[nodiscard]] session connect() const { return {files.connect(), kept}; }
};

/// A number for all bytes of an epoch, in their order.
template <class Run>
std::uint64_t hash_of_epoch(Run& run, std::uint64_t epoch) {
  std::uint64_t hash = 0;
  for (auto&& b : run.epoch(epoch))
    for (const auto x : b.values().flat()) hash = ps::mix64(hash + static_cast<std::uint64_t>(x) + 1);
  return hash;
}

template <class Plan>
std::uint64_t hash_of(const Plan& plan) {
  auto run = plan.open();
  return hash_of_epoch(run, 0);
}

/// What is written to standard error meanwhile.
template <class Call>
std::string errors_of(const std::filesystem::path& path, Call&& call) {
  std::fflush(stderr);
  const int before = ::dup(2);
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(file, 2);
  ::close(file);
  call();
  std::fflush(stderr);
  ::dup2(before, 2);
  ::close(before);
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Waits up to a time that no machine needs.
template <class Condition>
bool soon(Condition&& holds) {
  for (int i = 0; i < 20'000 && !holds(); ++i) std::this_thread::sleep_for(1ms);
  return holds();
}

}  // namespace fetching_far_test

using namespace fetching_far_test;

TEST_CASE("run/fetching_far: nothing is fetched twice, however workers and requests meet") {
  const auto near = rows<500>(400);
  const auto plan = [](const auto& where, unsigned workers, auto ahead) {
    return ps::npy_rows<std::uint8_t, 500>(where) | ps::shuffle(ps::seed(3)) | ps::repeat(3) | ahead |
           ps::batch(16) | ps::workers(workers);
  };
  const ps::simulated_storage_options slow{.latency = 500us, .jitter = 1ms};
  const ps::simulated_storage alone(near, {.latency = 0us});
  const std::uint64_t expected = hash_of(plan(alone, 1, ps::prefetch(0)));
  REQUIRE(alone.bytes() >= 3 * 400 * 500);
  for (const unsigned workers : {1u, 2u, 4u}) {
    const ps::simulated_storage one_by_one(near, slow);
    CHECK(hash_of(plan(one_by_one, workers, ps::prefetch(100, {.coalesce_gap = 0, .max_coalesced = 1}))) ==
          expected);
    CHECK(one_by_one.bytes() == alone.bytes());
    CHECK(one_by_one.reads() == alone.reads());
    const ps::simulated_storage together(near, slow);
    CHECK(hash_of(plan(together, workers, ps::prefetch(100, {.coalesce_gap = 20'000}))) == expected);
    CHECK(together.reads() < alone.reads() / 2);
    const ps::simulated_storage few(near, slow);
    CHECK(hash_of(plan(few, workers,
                       ps::prefetch(100, {.coalesce_gap = 0, .max_coalesced = 1, .max_in_flight = 2}))) ==
          expected);
    CHECK(few.bytes() == alone.bytes());
    CHECK(few.peak_in_flight() <= 2 + workers);  // one of each worker, where it came first
  }
}

TEST_CASE("run/fetching_far: long samples come in parts") {
  const auto near = rows<300'000>(24);
  const auto plan = [](const auto& where, auto ahead) {
    return ps::npy_rows<std::uint8_t, 300'000>(where) | ps::shuffle(ps::seed(3)) | ahead | ps::batch(4) |
           ps::workers(2);
  };
  const std::uint64_t expected = hash_of(plan(near, ps::prefetch(0)));
  const ps::simulated_storage_options slow{.latency = 2ms};
  const ps::simulated_storage whole(near, slow), parts(near, slow);
  CHECK(hash_of(plan(whole, ps::prefetch(8, {.coalesce_gap = 0, .max_coalesced = 1}))) == expected);
  CHECK(hash_of(plan(parts, ps::prefetch(8, {.coalesce_gap = 0, .max_coalesced = 1, .part_size = 64_KiB}))) ==
        expected);
  CHECK(parts.bytes() == whole.bytes());
  CHECK(parts.reads() > 4 * 20);  // five for each sample that no worker came for first

  SECTION("an error of a part is an error at its sample, after all batches before it") {
    ps::simulated_storage_options worn = slow;
    worn.faults.push_back({.object = 0, .begin = 128 + 7 * 300'000 + 200'000, .end = 128 + 8 * 300'000});
    const auto outcome = [&](const auto& of) {
      std::size_t batches = 0;
      auto run = of.open();
      try {
        for (auto&& b : run) batches += b.size();
      } catch (const ps::error& e) {
        return std::pair(batches, std::string(e.what()));
      }
      return std::pair(batches, std::string());
    };
    const auto alone = outcome(plan(ps::simulated_storage(near, worn), ps::prefetch(0)));
    CHECK_THAT(alone.second, Catch::Contains("rows.npy"));
    CHECK(
        (outcome(plan(ps::simulated_storage(near, worn), ps::prefetch(8, {.part_size = 64_KiB}))) == alone));
  }
}

TEST_CASE("run/fetching_far: requests go on into the next epochs, as far as they are asked for") {
  const auto near = rows<1000>(60);
  const ps::simulated_storage storage(near, {.latency = 1ms});
  const auto plan = ps::npy_rows<std::uint8_t, 1000>(storage) | ps::shuffle(ps::seed(5)) |
                    ps::prefetch(1000, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::batch(4) |
                    ps::workers(1);
  auto run = plan.open();
  SECTION("all of them") {
    std::uint64_t batches = 0;
    for (auto&& epoch : run.epochs(20)) {
      for (auto&& b : epoch) {
        CHECK(b.size() == 4);
        // the consumer holds the first batch of four, and blocks of at most 40 samples are open
        if (batches++ == 0) CHECK(soon([&] { return storage.bytes() > 12 * 60'000; }));
      }
    }
    CHECK(batches == 20 * 15);
  }
  SECTION("two epochs") {
    std::uint64_t maximum = 0;
    for (auto&& epoch : run.epochs(2))
      for (auto&& b : epoch) {
        (void)b;
        maximum = std::max(maximum, storage.bytes());
      }
    CHECK(maximum <= 2 * 60'000 + 20'000);  // with the header
  }
}

TEST_CASE("run/fetching_far: the memory stays within the limit, whatever the latency") {
  const auto near = rows<100'000>(300);
  const auto plan = [](const auto& where) {
    return ps::npy_rows<std::uint8_t, 100'000>(where) | ps::shuffle(ps::seed(2)) | ps::batch(8) |
           ps::memory(24_MiB) | ps::workers(3);
  };
  const std::uint64_t expected = hash_of(plan(near));
  for (const auto latency : {100us, 3'000us, 20'000us}) {
    const ps::simulated_storage storage(near, {.latency = latency, .jitter = latency});
    auto run = plan(storage).open();
    std::uint64_t maximum = 0, hash = 0;
    for (auto&& b : run.epoch(0)) {
      maximum = std::max(maximum, run.counters().bytes_held);
      for (const auto x : b.values().flat()) hash = ps::mix64(hash + static_cast<std::uint64_t>(x) + 1);
    }
    CHECK(hash == expected);
    CHECK(maximum <= 24_MiB);
    CHECK(maximum > 6_MiB);  // a quarter is for what is fetched, and batches have the rest
    CHECK(storage.peak_in_flight() > 3);
  }
}

TEST_CASE("run/fetching_far: the watchdog names a late request and its attempt; a timeline shows requests") {
  const penstock_test::temp_dir dir;
  const auto near = rows<1000>(64);
  ps::simulated_storage_options options{.latency = 1ms};
  // a row in the middle fails three times
  options.faults.push_back({.object = 0, .begin = 20'200, .end = 20'300, .times = 3});
  const ps::retrying storage(ps::simulated_storage(near, options), {.initial_backoff = 600ms, .seed = 2});
  const ps::timeline trace;
  const auto plan = ps::npy_rows<std::uint8_t, 1000>(storage) |
                    ps::prefetch(32, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::batch(4) |
                    ps::workers(1) | ps::watchdog(50ms) | trace;
  std::uint64_t hash = 0;
  ps::storage_counters counted;
  const std::string lines = errors_of(dir / "errors", [&] {
    auto run = plan.open();
    hash = hash_of_epoch(run, 0);
    counted = run.counters().storage;
  });
  CHECK(hash == hash_of(ps::npy_rows<std::uint8_t, 1000>(near) | ps::batch(4) | ps::workers(0)));
  CHECK(counted.retries == 3);
  CHECK_THAT(lines, Catch::Contains("the oldest request, for rows.npy at offset 20128, has taken ") &&
                        Catch::Contains(" s and is at attempt "));
  const std::string json = trace.json();
  CHECK_THAT(json, Catch::Contains("\"name\":\"request\"") &&
                       Catch::Contains("\"object\":0,\"offset\":20128,\"bytes\":1000") &&
                       Catch::Contains("\"name\":\"storage\",\"ph\":\"C\"") &&
                       Catch::Contains("\"retries\":"));
}

TEST_CASE("run/fetching_far: a run that ends waits neither for requests in flight nor for those to come") {
  const silent_storage storage{rows<1000>(4000)};
  const auto plan = ps::npy_rows<std::uint8_t, 1000>(storage) | ps::shuffle(ps::seed(5)) |
                    ps::prefetch(1000, {.coalesce_gap = 0, .max_coalesced = 1}) | ps::batch(4) |
                    ps::workers(2);
  const auto wait_for_requests = [&] { (void)soon([&] { return storage.kept->begun() == 16; }); };
  SECTION("destroyed") {
    auto run = plan.open();
    wait_for_requests();
  }
  SECTION("stopped from another thread, while the consumer waits") {
    auto run = plan.open();
    std::jthread other([&] {
      wait_for_requests();
      run.request_stop();
    });
    for (auto&& b : run) (void)b;
    CHECK(run.stopped());
  }
  SECTION("an exception in the loop") {
    CHECK_THROWS_AS(
        [&] {
          auto run = plan.open();
          wait_for_requests();
          throw 1;
        }(),
        int);
  }
  CHECK(storage.kept->in_flight() == 0);
  CHECK(storage.kept->begun() == 16);  // the others were never requested
}
