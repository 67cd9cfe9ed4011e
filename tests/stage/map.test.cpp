// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/map.hpp>

#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <memory>
#include <set>

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr auto drawn = [](int x, ps::rng& random) { return x * 1000 + static_cast<int>(random.below(1000)); };

struct takes_it_raw {
  using accepts_unfinished = void;
  template <class T>
  int operator()(const T&) const {
    return ps::unfinished<T> ? 1 : 0;
  }
};

}  // namespace

TEST_CASE("stage/map: a sample becomes the function's result, with any number of workers") {
  const auto plan = ps::from(first_ints(1000)) | ps::map([](int x) { return x * 2; }) |
                    ps::map([](int x) { return x + 0.5; }) | ps::batch(64);
  const auto alone = values_of(plan, 0);
  REQUIRE(alone.size() == 1000);
  for (std::size_t i = 0; i < alone.size(); ++i) REQUIRE(alone[i] == static_cast<double>(i) * 2 + 0.5);
  for (const unsigned workers : {1u, 2u, 7u}) REQUIRE(values_of(plan, workers) == alone);
}

TEST_CASE("stage/map: a pointer to a member will do for a function") {
  struct point {
    int x, y;
    [[nodiscard]] int sum() const { return x + y; }
    [[nodiscard]] int moved(ps::rng& random) const { return x * 1000 + static_cast<int>(random.below(1000)); }
  };
  const auto points = ps::from(std::vector<point>{{1, 10}, {2, 20}, {3, 30}});
  CHECK(values_of(points | ps::map(&point::y) | ps::batch(2), 0) == std::vector<int>{10, 20, 30});
  CHECK(values_of(points | ps::map(&point::sum) | ps::batch(2), 2) == std::vector<int>{11, 22, 33});
  const auto twice = points | ps::map([](const point& p) { return point{2 * p.x, p.y}; });
  CHECK(values_of(twice | ps::map(&point::x) | ps::batch(2), 0) == std::vector<int>{2, 4, 6});

  const auto moved_at_random = [](const point& p, ps::rng& random) { return p.moved(random); };
  CHECK(values_of(points | ps::seed(7) | ps::map(&point::moved) | ps::batch(2), 0) ==
        values_of(points | ps::seed(7) | ps::map(moved_at_random) | ps::batch(2), 0));

  using sample = ps::record<ps::field<"at", point>, ps::field<"n", int>>;
  for (auto&& b :
       ps::from(std::vector<sample>{sample(point{1, 2}, 3)}) | ps::map<"at">(&point::y) | ps::batch(1))
    CHECK(ps::get<"at">(b)[0] == 2);
}

TEST_CASE("stage/map: a field is replaced and the others pass, also those that cannot be copied") {
  using sample = ps::record<ps::field<"a", int>, ps::field<"b", int>>;
  const std::vector<sample> samples{sample(1, 2), sample(3, 4)};
  const auto plan = ps::from(samples) | ps::map<"b">([](int x) { return x * 0.5; }) | ps::batch(2);
  for (auto&& b : plan) {
    CHECK(ps::get<"a">(b)[1] == 3);
    CHECK(ps::get<"b">(b)[1] == 2.0);
  }
  static_assert(
      std::is_same_v<decltype(plan)::element, ps::record<ps::field<"a", int>, ps::field<"b", double>>>);
}

TEST_CASE("stage/map: random numbers depend on sample and stage, not on threads, ranks or neighbours") {
  const auto source = ps::from(first_ints(300)) | ps::shuffle(ps::seed(3));
  const auto plan = source | ps::map(drawn) | ps::batch(16);
  const auto alone = values_of(plan, 0);
  CHECK(std::set<int>(alone.begin(), alone.end()).size() == 300);
  for (const unsigned workers : {1u, 2u, 5u}) CHECK(values_of(plan, workers) == alone);
  CHECK(values_of(source | ps::prefetch(8) | ps::map([](int x) { return x; }) | ps::map(drawn) |
                  ps::batch(16)) == alone);
  std::vector<int> ranks;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    const auto part = values_of(source | ps::shard(rank, 3) | ps::map(drawn) | ps::batch(4));
    ranks.insert(ranks.end(), part.begin(), part.end());
  }
  auto sorted = alone;
  std::sort(sorted.begin(), sorted.end());
  std::sort(ranks.begin(), ranks.end());
  CHECK(ranks == sorted);
  CHECK(values_of(source | ps::map(drawn) | ps::batch(16) | ps::seed(4)) != alone);
}

TEST_CASE(
    "stage/map: two random stages differ, and a key keeps a stage's numbers when one is inserted before it") {
  const auto source = ps::from(first_ints(50));
  const auto pair = [](int x, ps::rng& r) { return x + static_cast<int>(r.below(1'000'000)); };
  const auto twice = [&](auto first, auto second) {
    return values_of(source | first | ps::map([](int) { return 0; }) | second | ps::batch(8));
  };
  CHECK(twice(ps::map(pair), ps::map(pair)) != twice(ps::map([](int x) { return x; }), ps::map(pair)));
  CHECK(twice(ps::map(pair), ps::map(pair, ps::key("crop"))) ==
        twice(ps::map([](int x) { return x; }), ps::map(pair, ps::key("crop"))));
  CHECK(twice(ps::map(pair), ps::map(pair, ps::key("crop"))) !=
        twice(ps::map(pair), ps::map(pair, ps::key("flip"))));
}

TEST_CASE("stage/map: unfinished values are finished first, unless the function takes them raw") {
  std::vector<std::vector<std::byte>> bytes(3, std::vector<std::byte>(5));
  CHECK(values_of(ps::from(bytes) | ps::map([](ps::bytes_view b) { return static_cast<int>(b.size()); }) |
                  ps::batch(3)) == std::vector<int>{5, 5, 5});
  CHECK(values_of(ps::from(first_ints(2)) | ps::map(takes_it_raw{}) | ps::batch(2)) ==
        std::vector<int>{0, 0});
}
