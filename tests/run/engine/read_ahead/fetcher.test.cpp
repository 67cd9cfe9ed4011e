// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/run/engine/read_ahead/fetcher.hpp>

#include <penstock/core/error.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/retrying.hpp>

#include "support/catch.hpp"
#include "support/deadline.hpp"
#include "support/noting_storage.hpp"
#include "support/slow_session.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fetcher_test {

namespace ps = penstock;
using penstock_test::letters;
using penstock_test::noted_range;
using penstock_test::slow_fetching;

namespace {

/// A fetcher over a storage that records its reads.
struct fetching {
  std::string text = letters(200'000);
  penstock_test::noting_storage storage{ps::memory_files().add("a", text).add("b", text)};
  penstock_test::noting_storage::session session = storage.connect();
  ps::range_list list;
  ps::fetcher it;

  explicit fetching(std::uint64_t bytes = 1 << 20, std::uint64_t rows = 64,
                    const ps::request_options& requests = {})
      : it(bytes, rows, requests) {}
  void want(std::uint64_t row, ps::object_id object, std::uint64_t offset, std::uint64_t size) {
    list.stand_at(row);
    list(session, object, offset, size);
  }
  /// The reads, once all have finished, sorted by offset.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> read() {
    it.store().wait_for_reads();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (const noted_range& one : storage.notes->reads) all.emplace_back(one.begin, one.end);
    std::sort(all.begin(), all.end());
    return all;
  }
  /// The bytes that a worker finds at its row.
  std::string take(std::uint64_t row, ps::object_id object, std::uint64_t offset, std::uint64_t size) {
    ps::fetched_sample mine;
    mine.use(&it.store());
    mine.stand_at(row);
    const ps::fetched_sample::scope held(mine);
    return std::string(ps::text_of(mine.find(&session, object, offset, size)));
  }
};

using pairs = penstock_test::range_pairs;

}  // namespace

TEST_CASE("run/fetcher: adjacent ranges are one read, and each row finds its own") {
  fetching all;
  all.want(0, 0, 1000, 100);
  all.want(1, 0, 150'000, 10);
  all.want(2, 0, 1200, 50);    // 100 bytes between them are read along
  all.want(3, 0, 12'000, 10);  // too far from the others
  all.want(3, 1, 1000, 10);    // of another object
  all.want(4, 0, 1000, 100);   // a range requested before
  CHECK(all.list.bytes() == 280);
  all.it.fetch(all.list);
  CHECK(all.list.entries().empty());
  CHECK(all.list.bytes() == 0);
  CHECK(all.read() == pairs{{1000, 1010}, {1000, 1250}, {12'000, 12'010}, {150'000, 150'010}});
  CHECK(all.take(0, 0, 1000, 100) == all.text.substr(1000, 100));
  CHECK(all.take(0, 0, 1000, 100).empty());
  CHECK(all.take(2, 0, 1200, 50) == all.text.substr(1200, 50));
  CHECK(all.take(2, 0, 1000, 50).empty());
  CHECK(all.take(3, 0, 12'000, 10) == all.text.substr(12'000, 10));
  CHECK(all.take(4, 0, 1050, 20) == all.text.substr(1050, 20));
  CHECK(all.take(1, 0, 150'003, 7) == all.text.substr(150'003, 7));
  CHECK(all.take(5, 0, 0, 1).empty());
}

TEST_CASE("run/fetcher: bytes that a worker has already taken are not read") {
  fetching all;
  CHECK(all.take(0, 0, 1000, 100).empty());
  all.want(0, 0, 1000, 100);
  all.want(1, 0, 50'000, 100);
  all.it.fetch(all.list);
  CHECK(all.read() == pairs{{50'000, 50'100}});
}

TEST_CASE("run/fetcher: after a failed read the worker reads its bytes itself") {
  fetching all;
  all.storage.notes->worn_begin = 1050;
  all.storage.notes->worn_end = 1060;
  all.want(0, 0, 1000, 100);
  all.want(1, 0, 50'000, 100);
  all.it.fetch(all.list);
  CHECK(all.take(0, 0, 1000, 100).empty());
  CHECK(all.take(1, 0, 50'000, 100) == all.text.substr(50'000, 100));
}

TEST_CASE("run/fetcher: a range too large for the store is left to the worker") {
  fetching all(4096);
  all.want(0, 0, 0, 2000);
  all.want(1, 0, 50'000, 1000);
  all.it.fetch(all.list);
  CHECK(all.take(0, 0, 0, 2000).empty());
  CHECK(all.take(1, 0, 50'000, 1000) == all.text.substr(50'000, 1000));
}

TEST_CASE("run/fetcher: it waits for room, and resumes when workers release it, or is halted") {
  fetching all(4096);
  for (std::uint64_t row = 0; row < 8; ++row) all.want(row, 0, 20'000 * row, 1000);
  SECTION("resumes") {
    std::thread fetches([&] { all.it.fetch(all.list); });
    for (std::uint64_t row = 0; row < 8; ++row) {
      // or nothing, if the worker was earlier
      const std::string found = all.take(row, 0, 20'000 * row, 1000);
      if (!found.empty()) CHECK(found == all.text.substr(20'000 * row, 1000));
      all.it.store().passed(row + 1);
    }
    fetches.join();
    CHECK(all.read().size() <= 8);
  }
  SECTION("halted") {
    std::thread fetches([&] { all.it.fetch(all.list); });
    const auto reads = [&] {
      const std::scoped_lock lock(all.storage.notes->busy);
      return all.storage.notes->reads.size();
    };
    while (reads() < 3) std::this_thread::yield();
    all.it.store().halt();
    fetches.join();
    all.it.end_reads();
    all.it.store().clear();
    all.want(0, 0, 0, 10);
    all.it.fetch(all.list);
    CHECK(all.take(0, 0, 0, 10) == all.text.substr(0, 10));
  }
}

TEST_CASE("run/fetcher: a row in a read that others wait for is shown without its other parts") {
  // Between its last read and its wait for room the fetcher shows row 5. A worker that comes before that
  // finds nothing and reads for itself, which is right too, but not what is asked here.
  bool shown = false;
  for (int attempt = 0; attempt < 200 && !shown; ++attempt) {
    fetching all(4096);
    all.want(0, 0, 0, 500);
    all.want(5, 0, 500, 500);  // in one read with the first
    for (std::uint64_t row = 1; row < 6; ++row) all.want(row, 0, 20'000 * row, 1000);
    std::atomic<bool> over{false};
    std::thread fetches([&] {
      all.it.fetch(all.list);
      over = true;
    });
    const auto reads = [&] {
      const std::scoped_lock lock(all.storage.notes->busy);
      return all.storage.notes->reads.size();
    };
    while (reads() < 4) std::this_thread::yield();  // there is room for no more
    for (int i = 0; i < 10 * attempt; ++i) std::this_thread::yield();
    CHECK(all.take(0, 0, 0, 500) == all.text.substr(0, 500));
    const std::string part = all.take(5, 0, 500, 500);
    shown = !part.empty();
    if (shown) CHECK(part == all.text.substr(500, 500));
    for (std::uint64_t row = 1; row < 4; ++row)
      CHECK(all.take(row, 0, 20'000 * row, 1000) == all.text.substr(20'000 * row, 1000));
    for (int i = 0; i < 5000 && !over; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(over);
    if (!over) all.it.store().stop();
    fetches.join();
    CHECK(all.take(4, 0, 80'000, 1000) == all.text.substr(80'000, 1000));
  }
  CHECK(shown);
}

TEST_CASE("run/fetcher: gap and size decide what is one request; with latency, both are larger") {
  slow_fetching far({}, 32 << 20);
  far.want(0, 0, 1000);
  far.want(1, 60'000, 1000);   // 59 KB between them
  far.want(2, 130'000, 1000);  // 69 KB
  far.want(3, 131'000, 1'900'000 - 131'000);
  far.it.fetch(far.list);
  CHECK(far.session.ranges() == pairs{{0, 61'000}, {130'000, 1'900'000}});
  for (int i = 0; i < 2; ++i) far.session.end_next();
  CHECK(far.take(1, 60'000, 1000) == far.session.text.substr(60'000, 1000));

  slow_fetching chosen({.coalesce_gap = 10, .max_coalesced = 3000});
  chosen.want(0, 0, 1000);
  chosen.want(1, 1010, 1000);
  chosen.want(2, 2020, 1000);  // too long with the others
  chosen.want(3, 3031, 10);    // too far
  chosen.it.fetch(chosen.list);
  CHECK(chosen.session.ranges() == pairs{{0, 2010}, {2020, 3020}, {3031, 3041}});
  for (int i = 0; i < 3; ++i) chosen.session.end_next();
}

TEST_CASE("run/fetcher: a long range goes in parts, and is there when all of them are") {
  slow_fetching all({.part_size = 64 << 10});
  all.want(0, 100, 200'000);
  all.want(1, 900'000, 64 << 10);
  all.it.fetch(all.list);
  const pairs parts = all.session.ranges();
  CHECK(parts == pairs{{100, 50'100},
                       {50'100, 100'100},
                       {100'100, 150'100},
                       {150'100, 200'100},
                       {900'000, 900'000 + (64 << 10)}});
  ps::fetched_sample mine;
  mine.use(&all.it.store());
  SECTION("all arrive") {
    std::atomic<bool> there{false};
    std::thread worker([&] {
      CHECK(all.take(0, 100, 200'000) == all.session.text.substr(100, 200'000));
      CHECK(there);
    });
    for (int i = 0; i < 3; ++i) all.session.end_next();
    there = true;
    all.session.end_next();
    worker.join();
    all.session.end_next();
  }
  SECTION("one fails, and the worker reads for itself") {
    all.session.end_next();
    all.session.end_next(true);
    for (int i = 0; i < 3; ++i) all.session.end_next();
    CHECK(all.take(0, 100, 200'000).empty());
    CHECK(all.take(1, 900'000, 64 << 10) == all.session.text.substr(900'000, 64 << 10));
  }
  SECTION("never") {
    slow_fetching whole({.part_size = 0});
    whole.want(0, 100, 200'000);
    whole.it.fetch(whole.list);
    CHECK(whole.session.ranges() == pairs{{100, 200'100}});
  }
}

TEST_CASE("run/fetcher: by default parts have from 8 to 16 MiB") {
  constexpr std::uint64_t size = 40 << 20, large = 17 << 20, fits = 16 << 20;
  slow_fetching all({}, 4 * size);
  all.session.text = penstock_test::letters(size + large + fits);
  all.want(0, 0, size);
  all.it.fetch(all.list);
  all.want(1, size, large);
  all.it.fetch(all.list);
  all.want(2, size + large, fits);
  all.it.fetch(all.list);
  const pairs parts = all.session.ranges();
  REQUIRE(parts.size() == 6);
  std::uint64_t end = 0;
  for (const auto& [begin, next] : parts) {
    CHECK(begin == end);
    CHECK(next - begin > (8 << 20));
    CHECK(next - begin <= (16 << 20));
    end = next;
  }
  CHECK(end == size + large + fits);
  for (std::size_t i = 0; i < parts.size(); ++i) all.session.end_next();
  const auto is_right = [&](std::uint64_t row, std::uint64_t at, std::uint64_t bytes) {
    return all.take(row, at, bytes) == all.session.text.substr(at, bytes);
  };
  CHECK(is_right(0, 0, size));
  CHECK(is_right(1, size, large));
  CHECK(is_right(2, size + large, fits));
}

TEST_CASE("run/fetcher: sessions that show their bytes get hints") {
  const auto files = ps::memory_files().add("a", "text");
  auto session = files.connect();
  ps::range_list list;
  list(session, 0, 0, 4);
  CHECK(list.entries().empty());
}

namespace {

/// Whose every read fails, in the calling thread.
struct failing_files : ps::memory_files {
  struct session : ps::memory_files::session {
    static constexpr ps::session_traits traits = {};  // shows nothing in place
    std::shared_ptr<std::atomic<int>> asked;
    void read(ps::object_id, std::uint64_t, ps::mutable_bytes) const {
      ++*asked;
      throw ps::error(ps::errc::io, "the wire is cut");
    }
  };
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>();
  [[nodiscard]] session connect() const { return {ps::memory_files::connect(), asked}; }
};

}  // namespace

TEST_CASE("run/fetcher: when its reads are ended, those that wait for another attempt end at once") {
  const penstock_test::deadline limit("a wait of an hour");
  failing_files files;
  files.add("a", letters(100));
  const ps::retrying retried(
      files, {.initial_backoff = std::chrono::hours(1), .max_backoff = std::chrono::hours(1)});
  const auto session = retried.connect();
  ps::range_list list;
  ps::fetcher it(1 << 20, 64);
  list.stand_at(0);
  list(session, 0, 0, 10);
  it.fetch(list);
  while (*files.asked == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  it.end_reads();
  CHECK(*files.asked == 1);
}

}  // namespace fetcher_test
