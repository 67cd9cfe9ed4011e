// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/stage/allow_empty.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <penstock/order/repeat.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/batch_by.hpp>
#include <penstock/stage/filter.hpp>

#include <cstdint>
#include <forward_list>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

// What `open` says of a plan without a batch; with `allow_empty` it opens, and its epochs are empty.
template <class Plan>
std::string refusal(const Plan& plan) {
  auto allowed = (plan | ps::allow_empty).open();
  for (auto epoch : allowed.epochs(2))
    for (auto&& b : epoch) FAIL("a batch of " << b.size());
  const std::string said = error_of([&] { (void)plan.open(); });
  CHECK_THAT(said, contains("an epoch of this plan has no batch: ") && contains("| allow_empty"));
  try {
    (void)plan.open();
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
  }
  return said;
}

}  // namespace

TEST_CASE("stage/allow_empty: an epoch that is known to have no batch is an error that says why") {
  const auto three = ps::from({1, 2, 3});
  const auto none = ps::from(std::vector<int>{});
  CHECK_THAT(refusal(three | ps::batch(8, ps::tail::drop)),
             contains("batch(8, tail drop) makes none of 3 samples; use a smaller batch or tail::keep"));
  CHECK_THAT(refusal(three | ps::take(1) | ps::batch(8, ps::tail::drop)),
             contains("makes none of 1 sample;"));
  CHECK_THAT(refusal(three | ps::shard(1, 2) | ps::batch(2, ps::tail::drop)),
             contains("none of 3 samples, and a global step on 2 ranks takes 4; use a smaller batch"));
  CHECK_THAT(refusal(none | ps::batch(8)), contains("the source has no samples"));
  CHECK_THAT(refusal(three | ps::take(0) | ps::batch(8)),
             contains("the source has 3 samples, and none is left after its order stages"));
  CHECK_THAT(refusal(three | ps::batch(2) | ps::skip(2)),
             contains("the stages after batch(2, tail keep) leave none of 2 batches"));
  CHECK_THAT(refusal(three | ps::batch(4) | ps::take(0)), contains("leave none of 1 batch;"));
  CHECK_THAT(refusal(none | ps::filter([](int) { return true; }) | ps::batch(2)),
             contains("the source has no samples"));
  CHECK_THAT(refusal(three | ps::skip(3) | ps::filter([](int) { return true; }) | ps::batch(2)),
             contains("none is left"));
  const auto each = [](std::uint64_t) { return 1u; };
  CHECK_THAT(refusal(three | ps::shard(0, 4) | ps::batch_by(each, 2, ps::tail::drop)),
             contains("makes none of 3 samples"));
  CHECK_THAT(refusal(none | ps::batch_by(each, 2)), contains("the source has no samples"));
}

TEST_CASE("stage/allow_empty: what may turn out to be empty opens") {
  const auto three = ps::from({1, 2, 3});
  CHECK(values_of(three | ps::batch(8)) == std::vector<int>{1, 2, 3});
  CHECK(values_of(three | ps::batch(8) | ps::allow_empty) == std::vector<int>{1, 2, 3});
  CHECK(values_of(three | ps::allow_empty | ps::batch(2) | ps::take(1)) == std::vector<int>{1, 2});
  // Only reading can tell, or there is no batch that could be missing.
  CHECK(values_of(three | ps::filter([](int x) { return x > 9; }) | ps::batch(2)).empty());
  CHECK(values_of(ps::from(std::forward_list<int>{}) | ps::batch(2)).empty());
  for (const int x : (ps::from(std::vector<int>{}) | ps::repeat(2)).epoch(0)) FAIL(x);
  // More ranks than samples: each rank does the same number of steps, some of them without a valid row.
  CHECK_NOTHROW((three | ps::shard(3, 4) | ps::batch(1)).open());
}
