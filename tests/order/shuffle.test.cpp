// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/core/random.hpp>
#include <penstock/order/cut.hpp>
#include <penstock/order/shuffle.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/order_input.hpp"
#include "support/test_data.hpp"

namespace ps = penstock;
using penstock_test::input;
using penstock_test::long_tests;

static_assert(ps::order_stage<ps::shuffle_stage>, "shuffle(seed(7)) is an order stage");
static_assert(ps::order_stage<ps::windowed_shuffle_stage>, "shuffle(seed(7), window) is an order stage");

namespace {

using numbers = std::vector<std::uint64_t>;

template <class Order>
numbers order_of_epoch(const Order& made, std::uint64_t epoch) {
  const auto bound = made.bind(epoch);
  numbers all(static_cast<std::size_t>(made.size()));
  for (std::uint64_t p = 0; p < made.size(); ++p) all[static_cast<std::size_t>(p)] = bound(p).index;
  return all;
}

/// Empty if the order is a bijection of the epoch onto itself with the right inverse; otherwise what is
/// wrong.
template <class Order>
std::string fault(const Order& made, std::uint64_t epoch) {
  const auto bound = made.bind(epoch);
  std::vector<bool> seen(static_cast<std::size_t>(made.size()));
  for (std::uint64_t p = 0; p < made.size(); ++p) {
    const ps::position at = bound(p);
    if (at.epoch != epoch || at.index >= made.size()) return "outside at " + std::to_string(p);
    if (seen[static_cast<std::size_t>(at.index)]) return "twice at " + std::to_string(p);
    seen[static_cast<std::size_t>(at.index)] = true;
    if (made.position_of(at) != ps::position{epoch, p}) return "wrong inverse at " + std::to_string(p);
  }
  if (made.position_of({epoch, made.size()}).has_value()) return "a position for an index that is not there";
  return "";
}

std::uint64_t shard_of(const numbers& starts, std::uint64_t index) {
  return static_cast<std::uint64_t>(std::upper_bound(starts.begin(), starts.end(), index) - starts.begin()) -
         1;
}

/// The correlation of position and index.
double correlation(const numbers& order) {
  const double n = static_cast<double>(order.size()), mean = (n - 1) / 2;
  double sum = 0, squares = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    sum += (static_cast<double>(p) - mean) * (static_cast<double>(order[p]) - mean);
    squares += (static_cast<double>(p) - mean) * (static_cast<double>(p) - mean);
  }
  return sum / squares;
}

/// The mean distance between the indices at neighbouring positions, relative to that of a random order, n /
/// 3.
double neighbour_distance(const numbers& order) {
  double sum = 0;
  for (std::size_t p = 1; p < order.size(); ++p) {
    sum += std::abs(static_cast<double>(order[p]) - static_cast<double>(order[p - 1]));
  }
  return sum / static_cast<double>(order.size() - 1) * 3 / static_cast<double>(order.size());
}

/// The mean number of distinct shards in a batch.
double shards_in_batch(const numbers& order, const numbers& starts, std::size_t batch) {
  double sum = 0;
  std::size_t batches = 0;
  for (std::size_t first = 0; first + batch <= order.size(); first += batch, ++batches) {
    std::set<std::uint64_t> shards;
    for (std::size_t p = first; p < first + batch; ++p) shards.insert(shard_of(starts, order[p]));
    sum += static_cast<double>(shards.size());
  }
  return sum / static_cast<double>(batches);
}

/// The number of positions whose successor is also the successor in storage; a random order has 1 on average.
std::uint64_t kept_pairs(const numbers& order) {
  std::uint64_t kept = 0;
  for (std::size_t p = 1; p < order.size(); ++p) kept += order[p] == order[p - 1] + 1 ? 1 : 0;
  return kept;
}

numbers standard_shuffle(std::size_t n, std::uint64_t seed) {
  numbers order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::mt19937_64 generator(seed);
  std::shuffle(order.begin(), order.end(), generator);
  return order;
}

}  // namespace

TEST_CASE("order/shuffle: a full shuffle is a bijection with an inverse, different in every epoch") {
  for (const std::uint64_t n : {0u, 1u, 2u, 57u, 121u, 1000u, 4097u}) {
    const auto made = ps::shuffle(ps::seed(7)).make({n, nullptr});
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
      INFO("n " << n << ", epoch " << epoch);
      CHECK(fault(made, epoch) == "");
    }
    if (n > 50) {
      CHECK(order_of_epoch(made, 0) != order_of_epoch(made, 1));
      CHECK(order_of_epoch(made, 0) != order_of_epoch(ps::shuffle(ps::seed(8)).make({n, nullptr}), 0));
      CHECK(order_of_epoch(made, 5) == order_of_epoch(ps::shuffle(ps::seed(7)).make({n, nullptr}), 5));
    }
  }
}

TEST_CASE("order/shuffle: windows and lanes are bijections with an inverse, over any unequal shards") {
  ps::rng random(3, 0, 0);
  const int rounds = long_tests() ? 50'000 : 1500;
  for (int round = 0; round < rounds; ++round) {
    numbers sizes(static_cast<std::size_t>(random.below(30)));
    for (auto& size : sizes) size = random.chance(0.2) ? 0 : random.below(random.chance(0.1) ? 300 : 25);
    const std::uint64_t window = 1 + random.below(12),
                        lanes = random.chance(0.3) ? 1 : 1 + random.below(random.chance(0.2) ? 900 : 20);
    const auto made =
        ps::shuffle(ps::seed(random()), ps::window(window), ps::lanes(lanes)).make(input(sizes));
    const std::string wrong = fault(made, random.below(1000));
    if (!wrong.empty())
      FAIL(wrong << ", shards " << sizes.size() << ", window " << window << ", lanes " << lanes);
  }
  SUCCEED("no fault");
}

TEST_CASE("order/shuffle: a window reads from its own shards alone, and every shard belongs to one window") {
  const numbers sizes{10, 0, 25, 3, 17, 17, 40, 1, 0, 9, 12, 30};
  const auto in = input(sizes);
  const auto order = order_of_epoch(ps::shuffle(ps::seed(1), ps::window(3)).make(in), 0);
  // While reading in order, at most three shards may be unfinished at any time.
  std::vector<std::uint64_t> left = sizes;
  for (std::size_t p = 0; p < order.size(); ++p) {
    --left[static_cast<std::size_t>(shard_of(*in.starts, order[p]))];
    std::size_t begun = 0;
    for (std::size_t s = 0; s < sizes.size(); ++s) begun += left[s] != 0 && left[s] != sizes[s] ? 1 : 0;
    REQUIRE(begun <= 3);
  }
}

TEST_CASE(
    "order/shuffle: position p is in lane p mod C, and a lane is a run of whole shards except at its ends") {
  numbers sizes(200, 10);
  const auto in = input(sizes);
  constexpr std::uint64_t lanes = 8;
  const auto order = order_of_epoch(ps::shuffle(ps::seed(1), ps::window(5), ps::lanes(lanes)).make(in), 2);
  std::set<std::uint64_t> all;
  std::size_t touched = 0;
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    std::set<std::uint64_t> shards;
    for (std::uint64_t p = lane; p < order.size(); p += lanes)
      shards.insert(shard_of(*in.starts, order[static_cast<std::size_t>(p)]));
    touched += shards.size();
    all.insert(shards.begin(), shards.end());
  }
  CHECK(all.size() == 200);
  CHECK(touched <= 200 + lanes - 1);
}

TEST_CASE("order/shuffle: without shard boundaries a window is the whole epoch") {
  const auto made = ps::shuffle(ps::seed(1), ps::window(4)).make({500, nullptr});
  CHECK(fault(made, 3) == "");
  CHECK(made.output().starts == nullptr);
  CHECK(ps::shuffle(ps::seed(1), ps::window(4)).make({0, nullptr}).size() == 0);
}

TEST_CASE("order/shuffle: the sequence is part of the format and does not change") {
  CHECK(order_of_epoch(ps::shuffle(ps::seed(42)).make({8, nullptr}), 1) == numbers{0, 5, 1, 3, 7, 4, 6, 2});
  CHECK(order_of_epoch(ps::shuffle(ps::seed(42), ps::window(2), ps::lanes(2)).make(input({4, 3, 2, 5})), 1) ==
        numbers{3, 12, 2, 7, 6, 9, 1, 10, 5, 13, 4, 11, 0, 8});
}

TEST_CASE("order/shuffle: many threads may bind and read one order") {
  numbers sizes(300, 20);
  const auto made = ps::shuffle(ps::seed(1), ps::window(5)).make(input(sizes));
  const auto expected = order_of_epoch(made, 6);
  std::vector<std::thread> threads;
  std::vector<char> right(4, 0);
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      bool same = true;
      for (std::uint64_t epoch = 0; epoch < 8; ++epoch) {
        const auto bound = made.bind((epoch + t) % 8);
        if ((epoch + t) % 8 != 6) continue;
        for (std::uint64_t p = 0; p < made.size(); ++p)
          same = same && bound(p).index == expected[static_cast<std::size_t>(p)];
      }
      right[t] = same ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(right == std::vector<char>(4, 1));
}

TEST_CASE("order/shuffle: impossible options are errors that say what to write") {
  const ps::order_input in{10, nullptr};
  CHECK_THROWS_WITH(ps::shuffle(ps::seed(1), ps::window(0)).make(in), penstock_test::contains("window(1)"));
  CHECK_THROWS_WITH(ps::shuffle(ps::seed(1), ps::window(1), ps::lanes(0)).make(in),
                    penstock_test::contains("lanes(0)"));
  CHECK_THROWS_WITH(ps::shuffle(ps::seed(1)).make({std::uint64_t{1} << 63, nullptr}),
                    penstock_test::contains("before repeat()"));
  CHECK_THROWS_WITH(ps::shuffle(ps::seed(1), ps::window(1)).make({std::uint64_t{1} << 63, nullptr}),
                    penstock_test::contains("before repeat()"));
  const auto broken = std::make_shared<const numbers>(numbers{0, 4});
  CHECK_THROWS_WITH(ps::shuffle(ps::seed(1), ps::window(1)).make({10, broken}),
                    penstock_test::contains("shard boundaries"));
}

TEST_CASE("order/shuffle: describes itself") {
  CHECK(ps::shuffle(ps::seed(7)).describe() == "shuffle(seed 7)");
  CHECK(ps::shuffle(ps::seed(7), ps::window(16)).describe() == "shuffle(seed 7, window 16)");
  CHECK(ps::shuffle(ps::seed(7), ps::window(16), ps::lanes(64)).describe() ==
        "shuffle(seed 7, window 16, lanes 64)");
}

TEST_CASE("order/shuffle: with lanes a node touches little more than its share of the shards") {
  ps::rng random(9, 0, 0);
  numbers sizes(10'000);
  for (auto& size : sizes) size = 50 + random.below(101);
  const auto in = input(sizes);
  constexpr std::uint64_t nodes = 32, ranks_a_node = 8, batch = 8;
  const auto max_shards = [&](std::uint64_t lanes, std::uint64_t step_size) {
    const auto bound = ps::shuffle(ps::seed(1), ps::window(16), ps::lanes(lanes)).make(in).bind(0);
    std::vector<std::vector<bool>> touched(nodes, std::vector<bool>(sizes.size()));
    ps::cut c{.size = in.size,
              .global = step_size,
              .world = nodes * ranks_a_node,
              .rank = 0,
              .lanes = lanes,
              .policy = ps::tail::drop};
    for (std::uint64_t step = 0; step < c.steps(); ++step) {
      for (c.rank = 0; c.rank < c.world; ++c.rank) {
        const auto view = c.at(step);
        for (std::uint64_t slot = 0; slot < view.valid(); ++slot) {
          const std::uint64_t found = shard_of(*in.starts, bound(view[slot]).index);
          touched[static_cast<std::size_t>(c.rank / ranks_a_node)][static_cast<std::size_t>(found)] = true;
        }
      }
    }
    std::int64_t maximum = 0;
    for (const auto& node : touched)
      maximum = std::max<std::int64_t>(maximum, std::count(node.begin(), node.end(), true));
    return static_cast<double>(maximum);
  };
  const double share = 10'000.0 / nodes;
  const double none = max_shards(1, nodes * ranks_a_node * batch);
  const double lanes_64 = max_shards(64, nodes * ranks_a_node * batch);
  const double lanes_2048 = max_shards(2048, nodes * ranks_a_node * batch);
  std::printf(
      "shards of 10,000 that one of 32 nodes touches at most: %.0f without lanes, %.0f with 64, %.0f with "
      "2048\n",
      none, lanes_64, lanes_2048);
  CHECK(none > 10 * share);
  CHECK(lanes_64 < 1.1 * share);
  CHECK(lanes_2048 < 1.1 * share);
}

TEST_CASE("order/shuffle: quality, beside std::shuffle") {
  constexpr std::size_t n = 200'000, batch = 256;
  ps::rng random(4, 0, 0);
  numbers sizes;
  for (std::uint64_t left = n; left != 0; left -= sizes.back())
    sizes.push_back(std::min<std::uint64_t>(left, 100 + random.below(201)));
  const auto in = input(sizes);
  std::printf("%-36s %12s %20s %17s %11s\n", "order of 200,000 in 1,000 shards", "correlation",
              "neighbour distance", "shards in batch", "kept pairs");
  struct measured {
    double correlation, distance, shards, kept;
  };
  const auto measure = [&](const char* name, const auto& order_of_epoch) {
    measured sum{0, 0, 0, 0};
    constexpr int epochs = 5;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      const numbers order = order_of_epoch(epoch);
      sum.correlation += std::abs(correlation(order)) / epochs;
      sum.distance += neighbour_distance(order) / epochs;
      sum.shards += shards_in_batch(order, *in.starts, batch) / epochs;
      sum.kept += static_cast<double>(kept_pairs(order)) / epochs;
    }
    std::printf("%-36s %12.4f %20.3f %17.1f %11.1f\n", name, sum.correlation, sum.distance, sum.shards,
                sum.kept);
    return sum;
  };
  const auto epochs_of = [&](const auto& stage) {
    return [made = stage.make(in)](std::uint64_t epoch) { return order_of_epoch(made, epoch); };
  };
  const auto standard =
      measure("std::shuffle", [&](std::uint64_t epoch) { return standard_shuffle(n, epoch); });
  const auto full = measure("shuffle(seed(7))", epochs_of(ps::shuffle(ps::seed(7))));
  const auto narrow =
      measure("shuffle(seed(7), window(16))", epochs_of(ps::shuffle(ps::seed(7), ps::window(16))));
  const auto wide =
      measure("shuffle(seed(7), window(64))", epochs_of(ps::shuffle(ps::seed(7), ps::window(64))));
  const auto laned = measure("shuffle(seed(7), window(16), lanes(64))",
                             epochs_of(ps::shuffle(ps::seed(7), ps::window(16), ps::lanes(64))));
  const auto shards_only =
      measure("shuffle(seed(7), window(1))", epochs_of(ps::shuffle(ps::seed(7), ps::window(1))));
  measure("sequential", [&](std::uint64_t) {
    numbers order(n);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    return order;
  });

  // A random order has correlation 0 with deviation 1 / sqrt(n) = 0.0022, and distance 1 with deviation
  // 0.0016.
  CHECK(standard.correlation < 0.01);
  CHECK(full.correlation < 0.01);
  CHECK(std::abs(full.distance - standard.distance) < 0.01);
  CHECK(std::abs(full.shards - standard.shards) < 1);
  CHECK(full.kept < 6);
  // A window mixes its shards evenly: a batch sees nearly all of them, and no more than two windows.
  CHECK(narrow.shards > 15);
  CHECK(narrow.shards < 32);
  CHECK(wide.shards > 55);
  CHECK(narrow.correlation < 0.2);
  CHECK(laned.shards > 150);
  CHECK(std::abs(laned.distance - 1) < 0.05);
  CHECK(shards_only.shards < 4);
}
