// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/prefetch.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <atomic>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("stage/prefetch: after batch it is the number of batches worked on ahead, and the sequence stays") {
  const auto plan = ps::from(first_ints(300)) | ps::map([](int x) { return x; }) | ps::batch(4);
  const auto plain = values_of(plan);
  for (const std::uint64_t depth : {1u, 2u, 5u, 40u})
    CHECK(values_of(plan | ps::prefetch(depth), 2) == plain);
}

TEST_CASE("stage/prefetch: no more batches are begun than it says, those that are held included") {
  std::atomic<int> begun{0};
  const auto count = [&begun](int x) {
    ++begun;
    return x;
  };
  auto run =
      (ps::from(first_ints(300)) | ps::map(count) | ps::batch(10) | ps::prefetch(3) | ps::workers(2)).open();
  auto first = run.next();
  REQUIRE(first);
  CHECK(begun <= 4 * 10);
  auto second = run.next();
  REQUIRE(second);
  CHECK(begun <= 4 * 10);
}

TEST_CASE("stage/prefetch: before batch samples are asked for ahead, and the sequence stays") {
  const auto plan = ps::from(first_ints(300)) | ps::shuffle(1) | ps::batch(4);
  CHECK(values_of(ps::from(first_ints(300)) | ps::shuffle(1) | ps::prefetch(64) | ps::batch(4), 2) ==
        values_of(plan));
}

TEST_CASE("stage/prefetch: more batches than any machine holds are one sentence, samples are not held") {
  const auto plan = ps::from(first_ints(12));
  for (const std::uint64_t many : {(std::uint64_t{1} << 20) + 1, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    CHECK_THAT(error_of([&] { (void)(plan | ps::batch(4) | ps::prefetch(many)).open(); }),
               contains("after batch holds that many batches"));
    CHECK(values_of(plan | ps::prefetch(many) | ps::batch(4)) == values_of(plan | ps::batch(4)));
  }
}
