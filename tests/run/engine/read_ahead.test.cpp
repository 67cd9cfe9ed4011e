// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/engine/read_ahead.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/feed/feed.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// Remembers what it was asked for.
struct listening_reader {
  mutable std::mutex lock;
  mutable std::vector<std::uint64_t> asked;
  void will_need(std::uint64_t index) const {
    const std::lock_guard guard(lock);
    asked.push_back(index);
  }
};

}  // namespace

TEST_CASE(
    "run/read_ahead: asks for the samples that come, in their order, a given number ahead, across the "
    "epoch's end") {
  const auto plan = ps::from(first_ints(20)) | ps::shuffle(3) | ps::batch(4);
  using orders_type = ps::sample_orders_of<std::remove_cvref_t<decltype(plan)>>;
  const std::shared_ptr<const orders_type> orders(new const orders_type(ps::make_sample_orders(plan)));
  ps::feed feed(ps::make_feed_facts(plan, *orders));
  feed.limit(2);
  listening_reader reader;
  ps::read_ahead<listening_reader, orders_type> ahead;
  ahead.start(reader, feed, orders, 8, false);
  ahead.opened(16);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < 24; ++i) expected.push_back(orders->sample_at({i / 20, i % 20}).index);
  CHECK(reader.asked == expected);
  ahead.restart(feed);
  reader.asked.clear();
  ahead.opened(0);
  CHECK(reader.asked == std::vector<std::uint64_t>(expected.begin(), expected.begin() + 8));
}

TEST_CASE("run/read_ahead: with a thread of its own it stops when told to, whatever it is doing") {
  const auto plan = ps::from(first_ints(2000)) | ps::batch(4) | ps::workers(0);
  using orders_type = ps::sample_orders_of<std::remove_cvref_t<decltype(plan)>>;
  const std::shared_ptr<const orders_type> orders(new const orders_type(ps::make_sample_orders(plan)));
  for (int round = 0; round < 30; ++round) {
    const ps::feed feed(ps::make_feed_facts(plan, *orders));
    listening_reader reader;
    ps::read_ahead<listening_reader, orders_type> ahead;
    ahead.start(reader, feed, orders, 1000, true);
    for (int i = 0; i < round; ++i) ahead.opened(4);
    ahead.stop();
    for (std::size_t i = 0; i < reader.asked.size(); ++i) REQUIRE(reader.asked[i] == i);
  }
}
