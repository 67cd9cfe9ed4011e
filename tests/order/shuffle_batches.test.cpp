// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/order/shuffle_batches.hpp>

#include <penstock/inspection/describe.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/repeat.hpp>
#include <penstock/order/sequential.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/take.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shuffle_batches_test {

namespace ps = penstock;
using namespace penstock_test;

static_assert(ps::order_stage<ps::shuffle_batches_stage>);

using of_samples = decltype(ps::from(first_ints(4)));
using of_batches = decltype(ps::from(first_ints(4)) | ps::batch(2));
static_assert(ps::can_connect<of_batches, ps::shuffle_batches_stage>);
static_assert(!ps::can_connect<of_samples, ps::shuffle_batches_stage>);
static_assert(ps::can_connect<of_samples, ps::shuffle_stage>);
static_assert(!ps::can_connect<of_batches, ps::shuffle_stage>);
static_assert(!ps::can_connect<of_batches, ps::windowed_shuffle_stage>);
static_assert(!ps::can_connect<of_batches, ps::split_stage>);
static_assert(!ps::can_connect<of_batches, ps::fold_stage>);
static_assert(ps::can_connect<of_batches, ps::sequential_stage>);

std::vector<std::vector<int>> batches_of(const auto& plan, std::uint64_t epoch) {
  std::vector<std::vector<int>> all;
  for (auto&& b : plan.epoch(epoch)) all.emplace_back(b.values().begin(), b.values().end());
  return all;
}

TEST_CASE(
    "order/shuffle_batches: batches come in a new order in every epoch, and their samples stay together") {
  const auto stored = ps::from(first_ints(24)) | ps::batch(4);
  const auto plan = stored | ps::shuffle_batches(ps::seed(7));
  const auto in_order = batches_of(stored, 0);
  auto first = batches_of(plan, 0), second = batches_of(plan, 1);
  CHECK(first != in_order);
  CHECK(second != first);
  CHECK(batches_of(plan, 0) == first);
  std::ranges::sort(first);
  std::ranges::sort(second);
  CHECK(first == in_order);
  CHECK(second == in_order);
  CHECK(batches_of(plan | ps::take(2), 0).size() == 2);
}

TEST_CASE("order/shuffle_batches: a state restores the order") {
  const auto plan = ps::from(first_ints(24)) | ps::batch(4) | ps::shuffle_batches(ps::seed(7));
  const auto whole = batches_of(plan, 0);
  auto run = plan.open();
  std::size_t seen = 0;
  ps::state where;
  for (auto&& b : run.epoch(0)) {
    CHECK(std::vector<int>(b.values().begin(), b.values().end()) == whole[seen]);
    if (++seen == 2) {
      where = run.state();
      break;
    }
  }
  auto resumed = plan.open(where);
  for (auto&& b : resumed) CHECK(std::vector<int>(b.values().begin(), b.values().end()) == whole[seen++]);
  CHECK(seen == whole.size());
}

TEST_CASE("order/shuffle_batches: a description tells stages of batches from those of samples") {
  const auto text = describe(ps::from(first_ints(24)) | ps::take(20) | ps::batch(4) |
                             ps::shuffle_batches(ps::seed(7)) | ps::take(2) | ps::repeat(2));
  const auto line_of = [&](std::string_view stage) {
    const auto begin = text.find(stage);
    return begin == std::string::npos ? std::string() : text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK_THAT(line_of("take(20)"), !contains("of batches"));
  CHECK_THAT(line_of("shuffle_batches(seed 7)"), contains("sequencer of batches"));
  CHECK_THAT(line_of("take(2)"), contains("sequencer of batches"));
  CHECK_THAT(line_of("repeat(2)"), contains("sequencer of batches"));
}

}  // namespace shuffle_batches_test
