// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/function_chain.hpp>

#include <penstock/core/record.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

constexpr auto plus_one = [](int x) { return x + 1; };
constexpr auto twice = [](int x) { return 2 * x; };
constexpr auto half_of = [](int x) { return static_cast<double>(x) / 2; };
constexpr auto draw = [](int x, ps::rng& random) { return x * 1000 + static_cast<int>(random.below(1000)); };

/// Counts its calls in the worker's scratch, and draws.
struct counted {
  using accepts_call = void;
  struct scratch {
    std::uint64_t calls = 0;
  };
  template <class>
  static constexpr bool draws = true;

  std::uint64_t operator()(int, const ps::call<scratch>& c) const {
    ++c.scratch.calls;
    return c.random().below(1'000'000);
  }
};

}  // namespace

TEST_CASE("stage/function_chain: each function gets what the one before it returns") {
  const auto numbers = ps::from(first_ints(100));
  const auto chained = numbers | ps::map(plus_one, twice, half_of) | ps::batch(7);
  const auto apart = numbers | ps::map(plus_one) | ps::map(twice) | ps::map(half_of) | ps::batch(7);
  for (const unsigned workers : {0u, 1u, 3u}) CHECK(values_of(chained, workers) == values_of(apart, workers));
  STATIC_REQUIRE(std::is_same_v<decltype(values_of(chained, 0)), std::vector<double>>);
  STATIC_REQUIRE_FALSE(ps::detail::chain_check<int, decltype(plus_one), decltype(twice)>::draws);
}

TEST_CASE("stage/function_chain: every function that draws has its own numbers") {
  const auto numbers = ps::from(first_ints(100)) | ps::seed(3);
  // The first draws what it would draw alone, wherever functions that do not draw stand.
  const auto alone = values_of(numbers | ps::map(draw) | ps::batch(10), 0);
  CHECK(values_of(numbers | ps::map(draw, [](int x) { return x; }) | ps::batch(10), 2) == alone);
  CHECK(values_of(numbers | ps::map([](int x) { return x; }, draw) | ps::batch(10), 2) == alone);
  const auto both =
      values_of(numbers | ps::map([](int, ps::rng& r) { return static_cast<int>(r.below(1000)); }, draw) |
                    ps::batch(10),
                0);
  std::size_t equal = 0;
  for (const int v : both) equal += v / 1000 == v % 1000 ? 1u : 0u;
  CHECK(equal < 5);
}

TEST_CASE("stage/function_chain: a key addresses the numbers of the whole chain") {
  const auto numbers = ps::from(first_ints(50)) | ps::seed(3);
  const auto same = [](int x) { return x; };
  const auto here = values_of(numbers | ps::map(same, draw, ps::key("crop")) | ps::batch(10), 0);
  CHECK(here == values_of(numbers | ps::map(draw, ps::key("crop")) | ps::batch(10), 0));
  CHECK(here != values_of(numbers | ps::map(same, draw, ps::key("other")) | ps::batch(10), 0));
  CHECK(here != values_of(numbers | ps::map(same, draw) | ps::batch(10), 0));
}

TEST_CASE("stage/function_chain: functions of a field, and other fields pass") {
  using sample = ps::record<ps::field<"x", int>, ps::field<"y", std::string>>;
  const auto samples = ps::from(std::vector<sample>{sample(1, "a"), sample(2, "b"), sample(3, "c")});
  std::vector<double> xs;
  for (auto&& b : samples | ps::map<"x">(plus_one, half_of) | ps::batch(2, ps::collate<"y">(ps::ragged)))
    for (const double x : ps::get<"x">(b)) xs.push_back(x);
  CHECK(xs == std::vector<double>{1, 1.5, 2});
  const auto keyed = samples | ps::seed(1) | ps::map<"x">(plus_one, draw, ps::key("k")) |
                     ps::map([](const auto& s) { return ps::get<"x">(s); }) | ps::batch(3);
  const auto alone = samples | ps::seed(1) | ps::map<"x">(plus_one) | ps::map<"x">(draw, ps::key("k")) |
                     ps::map([](const auto& s) { return ps::get<"x">(s); }) | ps::batch(3);
  CHECK(values_of(keyed, 0) == values_of(alone, 0));
}

TEST_CASE("stage/function_chain: functions with memory stand among others") {
  const auto numbers = ps::from(first_ints(64)) | ps::seed(9);
  const auto to_int = [](std::uint64_t x) { return static_cast<int>(x); };
  const auto plan = numbers | ps::map(plus_one, counted{}, to_int, counted{}) | ps::batch(8);
  const auto alone = values_of(plan, 0);
  CHECK(alone.size() == 64);
  for (const unsigned workers : {1u, 4u}) CHECK(values_of(plan, workers) == alone);
  using chain = ps::function_chain<decltype(plus_one), counted>;
  STATIC_REQUIRE(chain::draws<int>);
  chain::scratch room;
  const ps::call<chain::scratch> call{{}, 0, 1, 2, room};
  const chain functions(plus_one, counted{});
  CHECK(functions(3, call) == functions(4, call));
  CHECK(std::get<1>(room).calls == 2);
}
