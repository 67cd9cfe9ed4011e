// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/any_loader.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <span>
#include <stdexcept>

namespace ps = penstock;
using namespace penstock_test;

namespace {

struct numbers_batch {
  std::span<const int> values;
};

/// What a function in another file would return: two plans of different types, one type of loader.
ps::any_loader<numbers_batch> make_loader(bool odd_only) {
  const auto source = ps::from(first_ints(100)) | ps::shuffle(4);
  const auto view = [](auto& b) { return numbers_batch{b.values()}; };
  if (odd_only) return {source | ps::filter([](int x) { return x % 2 != 0; }) | ps::batch(8), view};
  return {source | ps::batch(8) | ps::workers(2), view};
}

std::vector<int> drain(ps::any_loader<numbers_batch>& loader, std::uint64_t epoch) {
  std::vector<int> all;
  for (auto& b : loader.epoch(epoch)) all.insert(all.end(), b.values.begin(), b.values.end());
  return all;
}

struct trainer {  // a loader as a member, without a template
  ps::any_loader<numbers_batch> loader = make_loader(false);
};

}  // namespace

TEST_CASE("integration/any_loader: the batches are those of the plan, epoch after epoch") {
  trainer mine;
  const auto plan = ps::from(first_ints(100)) | ps::shuffle(4) | ps::batch(8);
  auto run = plan.open();
  for (auto epoch : run.epochs(3)) {
    std::vector<int> expected;
    for (auto&& b : epoch) expected.insert(expected.end(), b.begin(), b.end());
    CHECK(drain(mine.loader, epoch.number()) == expected);
  }
  CHECK(mine.loader.counters().samples == 300);
  auto other = make_loader(true);
  CHECK(drain(other, 0).size() == 50);
}

TEST_CASE("integration/any_loader: it can be moved, and goes on where a state says") {
  auto loader = make_loader(false);
  std::vector<int> rest;
  std::size_t seen = 0;
  ps::state middle;
  for (auto& b : loader.epoch(0)) {
    if (++seen == 5)
      middle = loader.state();
    else if (seen > 5)
      rest.insert(rest.end(), b.values.begin(), b.values.end());
  }
  auto again = make_loader(false);
  again.restore(middle);
  auto moved = std::move(again);
  CHECK_FALSE(again);
  CHECK(drain(moved, 0) == rest);
}

TEST_CASE("integration/any_loader: an exception of the chain comes through") {
  const auto plan = ps::from(first_ints(100)) |
                    ps::map([](int x) { return x < 50 ? x : throw std::runtime_error("fifty"); }) |
                    ps::batch(10);
  ps::any_loader<numbers_batch> loader(plan, [](auto& b) { return numbers_batch{b.values()}; });
  std::size_t seen = 0;
  CHECK_THROWS_WITH(
      [&] {
        for (auto& b : loader.epoch(0)) seen += b.values.size();
      }(),
      "fifty");
  CHECK(seen == 50);
}
