// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/feed/front.hpp>

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/shuffle_buffer.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <list>
#include <string>
#include <vector>

namespace front_test {

namespace ps = penstock;
using namespace penstock_test;

namespace {

template <class Plan>
std::vector<int> read(const Plan& plan, std::uint64_t epoch = 0) {
  auto front = ps::make_front(plan);
  front.rewind(epoch);
  std::vector<int> all;
  for (int item = 0; front.next(item);) all.push_back(item);
  return all;
}

auto list(int n) {
  const auto all = first_ints(n);
  return ps::from(std::list<int>(all.begin(), all.end()));
}

}  // namespace

TEST_CASE("run/front: take, skip, repeat and shard act on samples as on positions") {
  CHECK(read(list(5) | ps::take(3)) == std::vector<int>{0, 1, 2});
  CHECK(read(list(5) | ps::skip(3)) == std::vector<int>{3, 4});
  CHECK(read(list(5) | ps::skip(9)).empty());
  CHECK(read(list(3) | ps::repeat(2) | ps::skip(2) | ps::take(3)) == std::vector<int>{2, 0, 1});
  CHECK(read(list(7) | ps::shard(1, 3)) == std::vector<int>{1, 4});
  CHECK(read(list(0) | ps::repeat()).empty());
  CHECK(read(list(2) | ps::repeat() | ps::take(5)) == std::vector<int>{0, 1, 0, 1, 0});
}

TEST_CASE("run/front: after shard and shuffle_buffer take and skip count for all ranks together") {
  for (const std::size_t world : {1u, 2u, 3u, 5u}) {
    std::vector<int> taken, skipped, both;
    for (std::size_t rank = 0; rank < world; ++rank) {
      const auto mixed = list(23) | ps::shard(rank, world) | ps::shuffle_buffer(4, ps::seed(1));
      for (const int i : read(mixed | ps::take(7))) taken.push_back(i);
      for (const int i : read(mixed | ps::skip(8))) skipped.push_back(i);
      for (const int i : read(mixed | ps::skip(4) | ps::take(5))) both.push_back(i);
    }
    CHECK(taken.size() == 7);
    CHECK(skipped.size() == 15);
    CHECK(both.size() == 5);
  }
}

TEST_CASE("run/front: a rank of a forward source gets the samples it would get over an indexed one") {
  const auto all = first_ints(12);
  // Full steps only: the last step, if short, is divided and not dealt.
  const auto same = [&](auto stages, std::uint64_t world) {
    for (std::uint64_t rank = 0; rank < world; ++rank)
      CHECK(read(stages(list(12) | ps::shard(rank, world))) ==
            values_of(stages(ps::from(all) | ps::shard(rank, world)) | ps::batch(1)));
  };
  for (const std::uint64_t world : {1u, 2u, 3u}) {
    same([](auto p) { return p | ps::repeat(2) | ps::shuffle_buffer(3, ps::seed(1)); }, world);
    same([](auto p) { return p | ps::skip(3) | ps::take(6) | ps::shuffle_buffer(3, ps::seed(1)); }, world);
    same([](auto p) { return p | ps::take(3) | ps::repeat(4) | ps::shuffle_buffer(2, ps::seed(1)); }, world);
  }
}

TEST_CASE(
    "run/front: take after shard, shuffle_buffer and repeat is refused, because samples cannot be counted "
    "there") {
  CHECK_THROWS_WITH(ps::make_front(list(5) | ps::shard(0, 2) | ps::shuffle_buffer(4, ps::seed(1)) |
                                   ps::repeat(2) | ps::take(10)),
                    penstock_test::contains("write repeat before shuffle_buffer"));
  CHECK(read(list(5) | ps::shard(0, 1) | ps::shuffle_buffer(4, ps::seed(1)) | ps::repeat(2) | ps::take(7))
            .size() == 7);
}

TEST_CASE("run/front: a shuffle buffer delivers every sample once") {
  auto all = read(list(100) | ps::shuffle_buffer(9, ps::seed(1)));
  CHECK(all != first_ints(100));
  CHECK(read(list(100) | ps::shuffle_buffer(9, ps::seed(1)), 1) != all);
  std::sort(all.begin(), all.end());
  CHECK(all == first_ints(100));
}

TEST_CASE("run/front: a long source is read to its end, through many chunks and over several epochs") {
  std::list<std::string> words;
  for (int i = 0; i < 10'000; ++i) words.push_back(std::to_string(i));
  const auto to_int = ps::map([](const std::string& word) { return std::stoi(word); });
  const auto same_in_every_epoch = [](const auto& plan, std::size_t expected) {
    for (const unsigned workers : {0u, 1u, 3u}) {
      auto run = (plan | ps::workers(workers)).open();
      for (auto epoch : run.epochs(3)) {
        std::vector<int> seen;
        for (auto&& b : epoch) seen.insert(seen.end(), b.begin(), b.end());
        REQUIRE(seen.size() == expected);
        std::sort(seen.begin(), seen.end());
        REQUIRE(std::unique(seen.begin(), seen.end()) == seen.end());
      }
    }
  };
  same_in_every_epoch(ps::from(words) | to_int | ps::batch(64), 10'000);
  same_in_every_epoch(ps::from(words) | ps::shuffle_buffer(100) | to_int | ps::batch(64), 10'000);
  same_in_every_epoch(ps::from(words) | to_int | ps::filter([](int x) { return x % 2 == 0; }) | ps::batch(7),
                      5'000);
  same_in_every_epoch(list(10'000) | ps::shuffle_buffer(9) | ps::batch(16), 10'000);
  std::size_t rows = 0;
  for (const int x : ps::from(words) | to_int) rows += x >= 0 ? 1 : 0;
  CHECK(rows == 10'000);
}

}  // namespace front_test
