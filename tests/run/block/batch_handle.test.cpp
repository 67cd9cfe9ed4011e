// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/run/block/batch_handle.hpp>

#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/prefetch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

TEST_CASE("run/batch_handle: a batch may outlive its run and be dropped in another thread") {
  using run_type = decltype((ps::from(first_ints(100)) | ps::batch(10) | ps::workers(2)).open());
  std::optional<run_type::value_type> kept;
  {
    auto run = (ps::from(first_ints(100)) | ps::batch(10) | ps::workers(2)).open();
    auto first = run.next();
    auto second = run.next();
    kept = std::move(*second);
  }
  CHECK(kept->values()[0] == 10);
  CHECK(kept->step() == 1);
  std::jthread([batch = std::move(*kept)]() mutable { batch.reset(); }).join();
}

TEST_CASE(
    "run/batch_handle: asking for more than there is while holding all is an error at once, and no harm") {
  auto run = (ps::from(first_ints(100)) | ps::batch(10) | ps::workers(1) | ps::prefetch(3)).open();
  std::vector<decltype(run)::value_type> held;
  for (int i = 0; i < 4; ++i) {
    auto next = run.next();
    REQUIRE(next);
    held.push_back(std::move(*next));
  }
  auto refused = run.next();
  CHECK_FALSE(refused);
  CHECK_THAT(error_of([&] { std::rethrow_exception(refused.failure); }), contains("you hold 4 of 4 batches"));
  held.erase(held.begin() + 1);
  auto next = run.next();
  REQUIRE(next);
  CHECK(next->values()[0] == 40);
  CHECK(held[1].values()[0] == 20);
}

TEST_CASE("run/batch_handle: positions, keys, epoch and step") {
  auto run = (ps::from(first_ints(10)) | ps::shuffle(2) | ps::batch(4)).open();
  for (auto epoch : run.epochs(2))
    for (auto&& b : epoch) {
      CHECK(b.epoch() == epoch.number());
      const auto at = b.positions();
      const auto keys = b.keys();
      REQUIRE(at.size() == b.size());
      for (std::size_t i = 0; i < b.size(); ++i) {
        CHECK(at[i] == ps::position{epoch.number(), b.step() * 4 + i});
        CHECK(keys[i] == std::to_string(b.values()[i]));
      }
    }
}
