// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/function_chain.hpp>

#include <penstock/core/record.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
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
struct counting {
  using accepts_call = void;
  struct scratch {
    std::uint64_t calls = 0;
  };
  template <class>
  static constexpr bool uses_random = true;

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
  STATIC_REQUIRE(ps::detail::chain_check<int, decltype(plus_one), decltype(twice)>::streams == 0);
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
  const auto plan = numbers | ps::map(plus_one, counting{}, to_int, counting{}) | ps::batch(8);
  const auto alone = values_of(plan, 0);
  CHECK(alone.size() == 64);
  for (const unsigned workers : {1u, 4u}) CHECK(values_of(plan, workers) == alone);
  using chain = ps::function_chain<decltype(plus_one), counting>;
  STATIC_REQUIRE(chain::uses_random<int>);
  chain::scratch room;
  const ps::call<chain::scratch> call{{}, 0, 1, 2, room};
  const chain functions(plus_one, counting{});
  CHECK(functions(3, call) == functions(4, call));
  CHECK(std::get<1>(room).calls == 2);
}

TEST_CASE("stage/function_chain: streams of chains in a row differ, and those of a chain in a chain") {
  // Six functions that draw, in one order and in several groupings.
  const auto one = [](std::vector<std::uint64_t> so_far, ps::rng& random) {
    so_far.push_back(random());
    return so_far;
  };
  const auto plan_of = [&](auto... stages) {
    const auto begin =
        ps::from(first_ints(20)) | ps::map([](int) { return std::vector<std::uint64_t>(); }) | ps::seed(11);
    return (begin | ... | stages) | ps::batch(4, ps::ragged);
  };
  const auto all_differ = [](const auto& plan) {
    for (auto&& b : plan.epoch(0))
      for (std::size_t i = 0; i < b.size(); ++i) {
        const auto drawn = b.values()[i];
        std::vector<std::uint64_t> sorted(drawn.begin(), drawn.end());
        std::sort(sorted.begin(), sorted.end());
        if (sorted.size() != 6 || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
          return false;
      }
    return true;
  };
  using chain = ps::function_chain<decltype(one), decltype(one)>;
  CHECK(all_differ(plan_of(ps::map(one, one, one), ps::map(one, one, one))));
  CHECK(all_differ(plan_of(ps::map(one, one), ps::map(one), ps::map(one, one, one))));
  CHECK(all_differ(plan_of(ps::map(chain(one, one), one, one), ps::map(one, one))));
  CHECK(all_differ(plan_of(ps::map(one, chain(one, one), chain(one, one)), ps::map(one))));
}

TEST_CASE("stage/function_chain: a reference into what goes is copied") {
  const auto text = [](int x) { return std::string(40, static_cast<char>('a' + x % 26)); };
  const auto itself = [](const std::string& s) -> const std::string& { return s; };
  const auto size = [](const std::string& s) { return s.size() * 1000 + static_cast<unsigned char>(s[39]); };
  const auto plan = ps::from(first_ints(26)) | ps::map(text, itself, itself) | ps::map(size) | ps::batch(26);
  const auto sizes = values_of(plan, 0);
  REQUIRE(sizes.size() == 26);
  for (std::size_t i = 0; i < sizes.size(); ++i) CHECK(sizes[i] == 40'000 + 'a' + i);
  using checked = ps::function_chain<decltype(itself), decltype(itself)>;
  checked::scratch room;
  const std::string kept = "kept";
  const ps::call<checked::scratch> call{{}, 0, 1, 2, room};
  CHECK(&checked(itself, itself)(kept, call) == &kept);  // what stays is not copied
}

TEST_CASE("stage/function_chain: a state knows how many functions draw") {
  const auto numbers = ps::from(first_ints(50)) | ps::seed(3);
  const auto two = numbers | ps::map(draw, draw) | ps::batch(10);
  const auto three = numbers | ps::map(draw, draw, draw) | ps::batch(10);
  const auto same = numbers |
                    ps::map(
                        draw, [](int x) { return x; }, draw) |
                    ps::batch(10);
  auto run = two.open();
  REQUIRE(run.next());
  const auto state = run.state();
  CHECK_NOTHROW(static_cast<void>(same.open(state)));
  CHECK_THROWS_AS(static_cast<void>(three.open(state)), ps::error);
}
