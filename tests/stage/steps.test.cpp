// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/steps.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

namespace ps = penstock;
using namespace penstock_test;

namespace {
constexpr auto odd_ones = [](int x) { return x % 2 != 0; };
}

TEST_CASE("stage/steps: an epoch has exactly that many batches, whatever the amount of data") {
  for (const std::uint64_t wanted : {1u, 2u, 3u, 10u}) {
    const auto plan = ps::from(first_ints(10)) | ps::shuffle(ps::seed(1)) | ps::batch(5) | ps::steps(wanted);
    auto run = plan.open();
    CHECK(run.steps_per_epoch() == wanted);
    for (auto epoch : run.epochs(3)) {
      std::size_t seen = 0;
      for (auto&& b : epoch) {
        CHECK(b.size() == 5);
        ++seen;
      }
      CHECK(seen == wanted);
    }
  }
}

TEST_CASE(
    "stage/steps: after a filter batches continue across the end of the data, and each pass is reordered") {
  const auto plan = ps::from(first_ints(10)) | ps::shuffle(ps::seed(1)) | ps::filter(odd_ones) |
                    ps::batch(4) | ps::steps(5);
  static_assert(ps::lockstep<decltype(plan)>);
  const auto all = batches_of(plan, 2);
  REQUIRE(all.size() == 5);
  std::vector<int> flat;
  for (const auto& b : all) {
    CHECK(b.size() == 4);
    flat.insert(flat.end(), b.begin(), b.end());
  }
  for (std::size_t pass = 0; pass < 4; ++pass) {
    std::vector<int> once(flat.begin() + static_cast<std::ptrdiff_t>(pass * 5),
                          flat.begin() + static_cast<std::ptrdiff_t>(pass * 5 + 5));
    std::sort(once.begin(), once.end());
    CHECK(once == std::vector<int>{1, 3, 5, 7, 9});
  }
}

TEST_CASE("stage/steps: take and skip of batches count within a pass, on either side of it") {
  const auto batches = ps::from(first_ints(10)) | ps::batch(2);
  const auto expected = std::vector<std::vector<int>>{{2, 3}, {4, 5}, {2, 3}};
  CHECK(batches_of(batches | ps::skip(1) | ps::take(2) | ps::steps(3)) == expected);
  CHECK(batches_of(batches | ps::skip(1) | ps::steps(3) | ps::take(2)) == expected);
  CHECK(batches_of(batches | ps::steps(3) | ps::skip(1) | ps::take(2)) == expected);
  CHECK((batches | ps::steps(3) | ps::take(2)).open().steps_per_epoch() == 3);
}

TEST_CASE("stage/steps: a filter on several ranks is refused by name without it, and allowed with it") {
  const auto source = ps::from(first_ints(100)) | ps::shard(0, 2) | ps::filter(odd_ones) | ps::batch(4);
  const auto said = error_of([&] { (void)source.open(); });
  CHECK_THAT(said, contains("`lockstep` is lost by filter"));
  CHECK_THAT(said, contains("steps(n)"));
  CHECK(error_of([&] { (void)(source | ps::steps(3)).open(); }) == "");
}

TEST_CASE("stage/steps: data without survivors are an error, not an endless search") {
  CHECK_THAT(error_of([] {
               (void)batches_of(ps::from(first_ints(10)) | ps::filter([](int) { return false; }) |
                                ps::batch(2) | ps::steps(3));
             }),
             contains("gave this rank no sample"));
  CHECK_THAT(error_of([] {
               (void)batches_of(ps::from(first_ints(3)) | ps::batch(5, ps::tail::drop) | ps::steps(3));
             }),
             contains("gives no batch"));
  CHECK_THAT(error_of([] { (void)ps::steps(0); }), contains("steps(0)"));
}
