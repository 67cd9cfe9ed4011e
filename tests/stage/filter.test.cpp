// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/filter.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/skip.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <string>

namespace ps = penstock;
using namespace penstock_test;

namespace {
constexpr auto odd = [](int x) { return x % 2 != 0; };
}

TEST_CASE("stage/filter: survivors keep their order, with any number of workers") {
  for (const int n : {0, 1, 2, 63, 64, 65, 1000, 20'000}) {
    const auto plan = ps::from(first_ints(n)) | ps::filter(odd) | ps::batch(32);
    std::vector<int> expected;
    for (int i = 1; i < n; i += 2) expected.push_back(i);
    for (const unsigned workers : {0u, 1u, 2u, 7u}) REQUIRE(values_of(plan, workers) == expected);
    const auto batches = batches_of(plan, 2);
    for (std::size_t i = 0; i + 1 < batches.size(); ++i) REQUIRE(batches[i].size() == 32);
  }
}

TEST_CASE("stage/filter: a pointer to a member serves as the function") {
  struct scored {
    int value;
    bool good;
    [[nodiscard]] bool bad() const { return !good; }
  };
  const auto samples = ps::from(std::vector<scored>{{1, true}, {2, false}, {3, true}});
  CHECK(values_of(samples | ps::filter(&scored::good) | ps::map(&scored::value) | ps::batch(2), 2) ==
        std::vector<int>{1, 3});
  CHECK(values_of(samples | ps::filter(&scored::bad) | ps::map(&scored::value) | ps::batch(2), 0) ==
        std::vector<int>{2});
}

TEST_CASE("stage/filter: samples with bytes are filtered too, and their batches are gathered from chunks") {
  std::vector<std::string> words;
  for (int i = 0; i < 500; ++i)
    words.push_back(std::string(static_cast<std::size_t>(i % 9), 'x') + std::to_string(i));
  const auto plan = ps::from(words) | ps::filter([](const std::string& w) { return w.size() > 6; }) |
                    ps::batch(7, ps::ragged);
  std::string expected;
  for (const auto& w : words)
    if (w.size() > 6) expected += w;
  for (const unsigned workers : {0u, 1u, 3u}) {
    std::string seen;
    for (auto&& b : (plan | ps::workers(workers)).epoch(0)) {
      const auto view = b.values();
      for (std::size_t i = 0; i < view.size(); ++i) seen.append(view[i].begin(), view[i].end());
    }
    REQUIRE(seen == expected);
  }
}

TEST_CASE("stage/filter: take and skip after it count survivors of all ranks, which shard deals in turn") {
  const auto survivors = ps::from(first_ints(100)) | ps::filter(odd);
  CHECK(values_of(survivors | ps::take(3) | ps::batch(2)) == std::vector<int>{1, 3, 5});
  CHECK(values_of(survivors | ps::skip(47) | ps::batch(2)) == std::vector<int>{95, 97, 99});
  CHECK(values_of(survivors | ps::skip(1) | ps::take(2)) == std::vector<int>{3, 5});
  CHECK(values_of(survivors | ps::shard(1, 3) | ps::take(5)) == std::vector<int>{3, 9});
}

TEST_CASE("stage/filter: the positions of a batch are those of its survivors") {
  for (auto&& b :
       (ps::from(first_ints(20)) | ps::shuffle(ps::seed(5)) | ps::filter(odd) | ps::batch(4)).epoch(0)) {
    const auto values = b.values();
    const auto at = b.positions();
    REQUIRE(at.size() == values.size());
    for (std::size_t i = 0; i < at.size(); ++i)
      REQUIRE(values[i] ==
              static_cast<int>(
                  ps::make_order_chain({20, nullptr}, ps::shuffle(ps::seed(5))).sample_at(at[i]).index));
  }
}

TEST_CASE("stage/filter: a predicate may draw random numbers, which do not depend on the workers") {
  const auto plan =
      ps::from(first_ints(500)) | ps::filter([](int, ps::rng& r) { return r.chance(0.3); }) | ps::batch(10);
  const auto alone = values_of(plan, 0);
  CHECK(alone.size() > 100);
  CHECK(alone.size() < 200);
  CHECK(values_of(plan, 3) == alone);
}
