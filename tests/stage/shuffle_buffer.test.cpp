// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/shuffle_buffer.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <list>

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// The textbook buffer, on a list of values.
std::vector<int> textbook(const std::vector<int>& in, std::size_t capacity, std::uint64_t seed,
                          std::uint64_t epoch) {
  std::vector<int> held, out;
  std::size_t next = 0;
  while (next < in.size() && held.size() < capacity) held.push_back(in[next++]);
  for (std::uint64_t given = 0; !held.empty(); ++given) {
    const auto place = static_cast<std::size_t>(ps::buffer_draw(seed, epoch, given, held.size()));
    out.push_back(held[place]);
    if (next < in.size()) {
      held[place] = in[next++];
    } else {
      held[place] = held.back();
      held.pop_back();
    }
  }
  return out;
}

}  // namespace

TEST_CASE("stage/shuffle_buffer: the sequence is that of the textbook's buffer") {
  for (const int n : {0, 1, 2, 10, 99, 500})
    for (const std::uint64_t capacity : {1u, 2u, 7u, 100u, 1000u}) {
      const auto plan = ps::from(first_ints(n)) | ps::shuffle_buffer(capacity, ps::seed(9)) | ps::batch(8);
      for (const unsigned workers : {0u, 2u})
        REQUIRE(values_of(plan, workers) == textbook(first_ints(n), capacity, 9, 0));
    }
}

TEST_CASE("stage/shuffle_buffer: over a forward-only list the sequence is unchanged") {
  const std::list<int> list = [] {
    const auto all = first_ints(200);
    return std::list<int>(all.begin(), all.end());
  }();
  CHECK(values_of(ps::from(list) | ps::shuffle_buffer(17, ps::seed(3)) | ps::batch(8), 2) ==
        textbook(first_ints(200), 17, 3, 0));
}

TEST_CASE(
    "stage/shuffle_buffer: before shard the ranks share one mixed sequence, after it each mixes its own") {
  const auto whole = textbook(first_ints(60), 10, 1, 0);
  std::vector<int> step0;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    const auto mine = batches_of(ps::from(first_ints(60)) | ps::shuffle_buffer(10, ps::seed(1)) |
                                 ps::shard(rank, 3) | ps::batch(4));
    step0.insert(step0.end(), mine[0].begin(), mine[0].end());
    auto own = values_of(ps::from(first_ints(60)) | ps::shard(rank, 3) | ps::shuffle_buffer(10, ps::seed(1)) |
                         ps::batch(4));
    auto plain = values_of(ps::from(first_ints(60)) | ps::shard(rank, 3) | ps::batch(4));
    CHECK(own != plain);
    std::sort(own.begin(), own.end());
    std::sort(plain.begin(), plain.end());
    CHECK(own == plain);
  }
  CHECK(step0 == std::vector<int>(whole.begin(), whole.begin() + 12));
}

TEST_CASE("stage/shuffle_buffer: the type says which guarantees it loses, and an empty buffer is refused") {
  const auto before = ps::from(first_ints(4)) | ps::shuffle_buffer(2) | ps::shard(0, 1) | ps::batch(2);
  const auto after = ps::from(first_ints(4)) | ps::shard(0, 1) | ps::shuffle_buffer(2) | ps::batch(2);
  static_assert(!ps::indexed<decltype(before)> && ps::elastic<decltype(before)> &&
                ps::lockstep<decltype(before)>);
  static_assert(!ps::indexed<decltype(after)> && !ps::elastic<decltype(after)> &&
                ps::resumable<decltype(after)>);
  CHECK_THAT(error_of([] { (void)ps::shuffle_buffer(0); }), contains("shuffle_buffer(0)"));
}
