// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/range_store.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/random.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

ps::fetched_part part_of(ps::range_store::read& from, std::uint64_t offset, std::uint64_t size) {
  return {nullptr, offset, size, from.bytes, &from, 0};
}

/// Fetches a row of one part and shows it; the read is loading.
ps::range_store::read* show(ps::range_store& store, std::uint64_t row, std::uint64_t bytes) {
  auto* const room = store.reserve(bytes, 1);
  if (room == nullptr) return nullptr;
  if (!store.claim(row)) {
    store.release(*room);
    store.release(*room);
    return nullptr;
  }
  CHECK(store.add(row, part_of(*room, 10 * row, bytes)));
  store.begin(1);
  store.publish(row);
  return room;
}

}  // namespace

TEST_CASE("storage/range_store: a range is handed over once, to the worker of its row") {
  ps::range_store store(4096, 8);
  auto* const first = show(store, 0, 100);
  REQUIRE(first != nullptr);
  std::memset(first->bytes, 7, 100);
  store.end(*first, true);
  const auto parts = store.take(0);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].bytes == first->bytes);
  CHECK(store.wait(parts[0]));
  CHECK(parts[0].bytes[99] == std::byte{7});
  CHECK(store.take(0).empty());
  store.release(*first);
  CHECK(store.take(5).empty());  // was never fetched
}

TEST_CASE("storage/range_store: a row that a worker takes before it is fetched is left out") {
  ps::range_store store(4096, 8);
  CHECK(store.take(3).empty());
  CHECK_FALSE(store.claim(3));
  CHECK(store.claim(4));
  CHECK(store.take(4).empty());  // while it is being claimed
  auto* const room = store.reserve(64, 1);
  CHECK(store.add(4, part_of(*room, 0, 64)));
  store.publish(4);
  CHECK(room->users == 1);  // its loading
  store.release(*room);
}

TEST_CASE(
    "storage/range_store: rows for which nothing is fetched are promised, the latest with those before") {
  ps::range_store store(4096, 8);
  CHECK_FALSE(store.left_out(0, 1));
  store.leave_out(8, 40);
  CHECK(store.left_out(8, 40));
  CHECK(store.left_out(20, 21));
  CHECK_FALSE(store.left_out(7, 9));
  CHECK_FALSE(store.left_out(39, 41));
  store.leave_out(40, 72);  // continues
  CHECK(store.left_out(8, 72));
  store.leave_out(80, 90);  // does not
  CHECK(store.left_out(80, 90));
  CHECK_FALSE(store.left_out(8, 9));
  const std::uint64_t many = 3u << 20;  // more than are remembered: the last ones are
  store.leave_out(90, 90 + many);
  CHECK(store.left_out(90 + many - 1000, 90 + many));
  CHECK_FALSE(store.left_out(80, 90));
  const std::uint64_t far = std::uint64_t{1} << 60;  // too far to remember: workers take those rows
  store.leave_out(far, far + 10);
  CHECK_FALSE(store.left_out(far, far + 10));
  CHECK_FALSE(store.left_out(90, 91));
  store.leave_out(8, 40);
  store.clear();
  CHECK_FALSE(store.left_out(8, 9));
}

TEST_CASE("storage/range_store: a row has up to four parts") {
  ps::range_store store(4096, 8);
  auto* const room = store.reserve(64, 5);
  REQUIRE(store.claim(0));
  for (int i = 0; i < 4; ++i) CHECK(store.add(0, part_of(*room, 0, 16)));
  CHECK_FALSE(store.add(0, part_of(*room, 0, 16)));
  store.publish(0);
  CHECK(store.take(0).size() == 4);
}

TEST_CASE("storage/range_store: its memory is bounded, contiguous for each read, and reused in order") {
  ps::range_store store(1024, 16);
  CHECK(store.capacity() == 1024);
  CHECK(store.largest() == 256);
  std::vector<ps::range_store::read*> all;
  for (std::uint64_t row = 0; auto* const one = show(store, row, 192); ++row) all.push_back(one);
  CHECK(all.size() == 5);  // of 192 bytes; the rest is too small
  for (auto* one : all) store.end(*one, true);
  CHECK(store.reserve(192, 1) == nullptr);
  CHECK(store.take(1).size() == 1);
  store.release(*all[1]);
  CHECK(store.reserve(192, 1) == nullptr);  // the oldest is not free
  CHECK(store.take(0).size() == 1);
  store.release(*all[0]);
  auto* const again = store.reserve(192, 1);
  REQUIRE(again != nullptr);
  CHECK(again->bytes == all[0]->bytes);  // not across the end of the memory
  CHECK(store.reserve(192, 1) != nullptr);
  CHECK(store.reserve(192, 1) == nullptr);
}

TEST_CASE("storage/range_store: it tells how many rows it has places for, and which have passed") {
  ps::range_store store(4096, 9);
  CHECK(store.rows() >= 9);
  CHECK(store.capacity() == 4096);
  CHECK(store.largest() == 1024);
  CHECK(store.passed() == 0);
  store.passed(7);
  CHECK(store.passed() == 7);
  store.clear();
  CHECK(store.passed() == 0);
}

TEST_CASE("storage/range_store: rows that no worker takes are released when all workers have passed them") {
  ps::range_store store(1024, 4);
  std::vector<ps::range_store::read*> all;
  for (std::uint64_t row = 0; row < 4; ++row) all.push_back(show(store, row, 192));
  for (auto* one : all) store.end(*one, true);
  store.passed(2);
  store.sweep();
  CHECK(all[0]->users == 0);
  CHECK(all[1]->users == 0);
  CHECK(all[2]->users == 1);
  CHECK(store.take(1).empty());
  // a worker that comes to the place of an old row first releases it
  CHECK(store.take(6).empty());
  CHECK(all[2]->users == 0);
  store.passed(1'000'000);
  store.sweep();
  CHECK(all[3]->users == 0);
}

TEST_CASE("storage/range_store: a row that all workers have passed is released, however late it is fetched") {
  ps::range_store store(1024, 4);
  auto* const room = store.reserve(64, 1);
  REQUIRE(store.claim(1));
  CHECK(store.add(1, part_of(*room, 0, 64)));
  store.passed(2);
  store.sweep();
  CHECK(room->users == 2);
  store.publish(1);
  CHECK(room->users == 1);  // its loading
  CHECK_FALSE(store.claim(0));
  CHECK(store.take(1).empty());
  store.release(*room);
}

TEST_CASE("storage/range_store: the rows the oldest read waits for") {
  ps::range_store store(1024, 4);
  auto* const first = store.reserve(64, 1);
  auto* const second = store.reserve(64, 2);
  REQUIRE(store.claim(0));
  REQUIRE(store.claim(1));
  CHECK_FALSE(store.needs_oldest(0));
  CHECK(store.add(0, part_of(*second, 0, 32)));
  CHECK_FALSE(store.needs_oldest(0));
  CHECK(store.add(0, part_of(*first, 0, 64)));
  CHECK(store.add(1, part_of(*second, 32, 32)));
  CHECK(store.needs_oldest(0));
  CHECK_FALSE(store.needs_oldest(1));
}

TEST_CASE("storage/range_store: a failed read is not a part; its worker reads the bytes itself") {
  ps::range_store store(4096, 8);
  auto* const one = show(store, 0, 100);
  const auto parts = store.take(0);
  store.end(*one, false);
  CHECK_FALSE(store.wait(parts[0]));
  store.release(*one);
}

TEST_CASE("storage/range_store: a stop ends all waiting; a halt only the fetcher's") {
  ps::range_store store(1024, 8);
  auto* const one = show(store, 0, 192);
  const auto parts = store.take(0);
  SECTION("stop") {
    std::thread worker([&] {
      try {
        (void)store.wait(parts[0]);
        std::abort();
      } catch (const ps::error& e) {
        if (e.code() != ps::errc::stopped) std::abort();
      }
    });
    std::thread fetcher([&] {
      if (store.wait_for_room()) std::abort();
    });
    store.stop();
    worker.join();
    fetcher.join();
    store.end(*one, true);
    CHECK(store.wait(parts[0]));  // loaded parts can still be used
    CHECK_FALSE(store.wait_for_room());
  }
  SECTION("halt and clear") {
    std::thread fetcher([&] {
      if (store.wait_for_room()) std::abort();
    });
    store.halt();
    fetcher.join();
    std::thread reads([&] { store.end(*one, true); });
    store.wait_for_reads();
    reads.join();
    store.release(*one);
    store.clear();
    CHECK(store.wait_for_room());
    auto* const anew = show(store, 0, 192);
    REQUIRE(anew != nullptr);
    CHECK(store.take(0).size() == 1);
    store.end(*anew, true);
  }
}

TEST_CASE("storage/range_store: a fetcher, a storage and workers at once") {
  constexpr std::uint64_t rows = 20'000, depth = 32, workers = 3;
  ps::range_store store(16'384, 2 * depth);
  std::atomic<std::uint64_t> next{0}, fetched{0};
  std::vector<std::atomic<bool>> done(rows);
  std::mutex lock;
  std::deque<ps::range_store::read*> queue;
  bool ended = false;

  std::thread storage([&] {
    while (true) {
      ps::range_store::read* one = nullptr;
      {
        const std::lock_guard guard(lock);
        if (queue.empty() && ended) return;
        if (!queue.empty()) {
          one = queue.front();
          queue.pop_front();
        }
      }
      if (one == nullptr) {
        std::this_thread::yield();
        continue;
      }
      std::uint64_t row = 0;
      std::memcpy(&row, one->bytes, 8);
      for (std::uint64_t i = 0; i < 16; ++i) std::memcpy(one->bytes + 8 * i, &row, 8);
      store.end(*one, row % 13 != 0);
    }
  });
  std::vector<std::thread> all;
  for (std::uint64_t w = 0; w < workers; ++w)
    all.emplace_back([&, w] {
      for (std::uint64_t row = w; row < rows; row += workers) {
        while (row >= next.load(std::memory_order_acquire) + depth / 2) std::this_thread::yield();
        if (ps::mix64(row) % 17 != 0) {  // some rows are never taken
          for (const auto& part : store.take(row)) {
            if (store.wait(part)) {
              std::uint64_t first = 0, last = 0;
              std::memcpy(&first, part.bytes, 8);
              std::memcpy(&last, part.bytes + part.size - 8, 8);
              if (first != row || last != row) std::abort();
              fetched.fetch_add(1, std::memory_order_relaxed);
            }
            store.release(*part.from);
          }
        }
        done[row].store(true, std::memory_order_release);
      }
    });
  std::thread consumer([&] {
    for (std::uint64_t row = 0; row < rows; ++row) {
      while (!done[row].load(std::memory_order_acquire)) std::this_thread::yield();
      store.passed(row + 1);
      next.store(row + 1, std::memory_order_release);
    }
  });
  for (std::uint64_t row = 0; row < rows; ++row) {
    while (row >= next.load(std::memory_order_acquire) + depth) std::this_thread::yield();
    store.sweep();
    ps::range_store::read* room = nullptr;
    while ((room = store.reserve(128 + 8 * (row % 5), 1)) == nullptr) {
      if (!store.wait_for_room()) std::abort();
      store.sweep();
    }
    std::memcpy(room->bytes, &row, 8);
    if (!store.claim(row)) {
      store.release(*room);
      store.release(*room);
      continue;
    }
    (void)store.add(row, part_of(*room, 0, 128));
    store.begin(1);
    store.publish(row);
    const std::lock_guard guard(lock);
    queue.push_back(room);
  }
  {
    const std::lock_guard guard(lock);
    ended = true;
  }
  storage.join();
  for (auto& one : all) one.join();
  consumer.join();
  store.wait_for_reads();
  CHECK(fetched > 0);
}
