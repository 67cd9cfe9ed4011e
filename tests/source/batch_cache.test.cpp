// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/error.hpp>
#include <penstock/source/files/parallel.hpp>
#include <penstock/source/tables/batch_cache.hpp>

#include "support/catch.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ps = penstock;
using ps::detail::arrow_batch;
using ps::detail::batch_cache;
using ps::detail::shared_loop;

namespace batch_cache_test {

constexpr std::uint64_t each = 1000;

/// Batch `i` has `i` rows, which several threads have counted.
struct loader {
  std::atomic<std::size_t> loads{0}, failures{0};

  const arrow_batch* operator()(std::size_t which, batch_cache::sharing& help) {
    ++loads;
    std::atomic<std::uint64_t> rows{0};
    auto count = [&](std::size_t) {
      std::this_thread::yield();
      ++rows;
    };
    shared_loop loop(which, count);
    help.run(loop);
    auto* const made = new arrow_batch;
    made->root.length = rows;
    made->kept_bytes = each;
    return made;
  }
};

template <class Work>
void on_threads(std::size_t count, Work work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([=] { work(i); });
  for (std::thread& one : threads) one.join();
}

}  // namespace batch_cache_test

using namespace batch_cache_test;

TEST_CASE("source/batch_cache: threads that go through batches in order load each one once") {
  constexpr std::size_t count = 60;
  loader load;
  batch_cache batches(count, count * each);
  std::atomic<std::size_t> wrong{0};
  on_threads(4, [&](std::size_t) {
    for (std::size_t i = 0; i < count; ++i)
      if (batches.get(i, load)->root.length != i) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(load.loads == count);
  for (std::size_t i = 0; i < count; ++i) CHECK(batches.find(i)->root.length == i);
}

TEST_CASE("source/batch_cache: no more bytes are kept than the limit says, and what is in use stays") {
  constexpr std::size_t count = 30;
  for (const std::uint64_t keep : {std::uint64_t{0}, 3 * each, 5 * each + 1}) {
    loader load;
    batch_cache batches(count, keep);
    std::atomic<std::size_t> wrong{0};
    on_threads(3, [&](std::size_t thread) {
      for (std::size_t i = 0; i < 200; ++i) {
        const std::size_t which = thread == 0 ? i % count : (i * 7 + thread) % count;
        const auto batch = batches.get(which, load);
        std::this_thread::yield();
        if (batch->root.length != which) ++wrong;
      }
    });
    CHECK(wrong == 0);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) kept += batches.find(i) ? 1 : 0;
    CHECK(kept >= 1);
    CHECK(kept * each <= std::max(keep, each));
  }
}

TEST_CASE("source/batch_cache: in sequence, the first ones stay for the next epoch") {
  constexpr std::size_t count = 10;
  loader load;
  batch_cache batches(count, 5 * each);
  for (std::size_t i = 0; i < count; ++i) (void)batches.get(i, load);
  CHECK(load.loads == count);
  // Five are kept: the last two may be in use.
  for (const std::size_t i : {0u, 1u, 2u, 8u, 9u}) CHECK(batches.find(i));
  for (std::size_t i = 0; i < count; ++i) (void)batches.get(i, load);
  CHECK(load.loads == 2 * count - 4);
  // In any other order those that were used last stay.
  for (const std::size_t i : {5u, 3u, 7u, 2u, 4u}) (void)batches.get(i, load);
  for (const std::size_t i : {5u, 3u, 7u, 2u, 4u}) CHECK(batches.find(i));
}

TEST_CASE("source/batch_cache: a failure is told to those who asked, and the batch can be asked for again") {
  batch_cache batches(4, 10 * each);
  loader load;
  std::atomic<int> attempts{0}, failed{0};
  const auto fails_first = [&](std::size_t which, batch_cache::sharing& help) -> const arrow_batch* {
    auto refuse = [&](std::size_t i) {
      if (i == 3 && attempts++ == 0) throw ps::error(ps::errc::io, "not now");
    };
    shared_loop loop(6, refuse);
    help.run(loop);
    return load(which, help);
  };
  on_threads(4, [&](std::size_t) {
    for (int k = 0; k < 2; ++k) {
      try {
        if (batches.get(2, fails_first)->root.length != 2) failed += 100;
      } catch (const ps::error& e) {
        if (e.message() == "not now") ++failed;
      }
    }
  });
  CHECK(failed == 1);
  CHECK(batches.find(2)->root.length == 2);
  CHECK_FALSE(batches.find(3));
}
