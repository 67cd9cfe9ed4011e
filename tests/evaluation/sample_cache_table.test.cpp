// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/sample_cache_node.hpp>

#include "support/catch.hpp"
#include "support/count_allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace sample_cache_table_test {

using penstock::detail::sample_cache_table;

namespace {

std::atomic<int> destroyed{0};
void destroy(void* one) noexcept {
  delete static_cast<std::uint64_t*>(one);
  ++destroyed;
}

}  // namespace

TEST_CASE("evaluation/sample_cache_table: holds what it is given, finds nothing else, and destroys it") {
  destroyed = 0;
  {
    sample_cache_table table(1 << 20, destroy);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      auto one = std::make_unique<std::uint64_t>(i);
      REQUIRE(table.find(i * 7) == nullptr);
      REQUIRE(table.add(i * 7, one.get(), 8) == one.get());
      (void)one.release();
    }
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const void* const found = table.use(i * 7);
      REQUIRE(found != nullptr);
      REQUIRE(*static_cast<const std::uint64_t*>(found) == i);
      REQUIRE(table.find(i * 7 + 1) == nullptr);
    }
    CHECK(table.counters().samples == 5000);
    CHECK(table.counters().hits == 5000);
    CHECK(table.counters().bytes >= 5000 * (8 + 16));
    CHECK(table.counters().bytes <= 1 << 20);
    CHECK(!table.full());
  }
  CHECK(destroyed == 5000);
}

TEST_CASE(
    "evaluation/sample_cache_table: a number that is there keeps its object, and the other one stays the "
    "caller's") {
  sample_cache_table table(1 << 20, destroy);
  auto one = std::make_unique<std::uint64_t>(1), two = std::make_unique<std::uint64_t>(2);
  const void* const first = table.add(9, one.get(), 8);
  CHECK(first == one.release());
  CHECK(table.add(9, two.get(), 8) == first);
  CHECK(table.counters().samples == 1);
}

TEST_CASE(
    "evaluation/sample_cache_table: the limit is for objects and places together, and what does not fit is "
    "refused") {
  sample_cache_table table(10'000, destroy);
  std::uint64_t added = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto one = std::make_unique<std::uint64_t>(i);
    if (table.add(i, one.get(), 100) == nullptr) continue;
    (void)one.release();
    ++added;
  }
  CHECK(added != 0);
  CHECK(table.counters().samples == added);
  CHECK(table.counters().bytes <= 10'000);
  CHECK(table.full());

  sample_cache_table small(10'000, destroy);
  auto large = std::make_unique<std::uint64_t>(0);
  CHECK(small.add(1, large.get(), 20'000) == nullptr);
  CHECK(!small.full());  // others may fit
  CHECK(small.add(1, large.get(), ~std::uint64_t{0}) == nullptr);
}

TEST_CASE("evaluation/sample_cache_table: where memory is short, nothing is counted that it does not hold") {
  sample_cache_table table(1 << 20, destroy);
  auto one = std::make_unique<std::uint64_t>(1);
  const std::uint64_t failed =
      penstock_test::fail_each_allocation([&] { (void)table.add(7, one.get(), 100); },
                                          [&](bool whole) {
                                            if (!whole) CHECK(table.counters().bytes == 0);
                                          });
  CHECK(failed != 0);
  CHECK(table.find(7) == one.release());
}

TEST_CASE("evaluation/sample_cache_table: many threads add and find the same numbers") {
  destroyed = 0;
  std::atomic<std::uint64_t> kept{0};
  {
    sample_cache_table table(8 << 20, destroy);
    std::vector<std::thread> threads;
    std::atomic<bool> wrong{false};
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (std::uint64_t k = 0; k < 20'000; ++k) {
          const std::uint64_t number = (k * 2654435761u + t * 17) % 3000;
          if (const void* const found = table.use(number); found != nullptr) {
            if (*static_cast<const std::uint64_t*>(found) != number) wrong = true;
            continue;
          }
          auto one = std::make_unique<std::uint64_t>(number);
          const void* const there = table.add(number, one.get(), 8);
          if (there == one.get()) (void)one.release(), ++kept;
          if (there == nullptr || *static_cast<const std::uint64_t*>(there) != number) wrong = true;
        }
      });
    for (std::thread& one : threads) one.join();
    CHECK(!wrong);
    CHECK(table.counters().samples == kept);
    CHECK(kept <= 3000);
  }
  CHECK(static_cast<std::uint64_t>(destroyed) == kept);
}

}  // namespace sample_cache_table_test
