// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/evaluation/stage_chain.hpp>

#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

template <class Plan>
auto evaluate_all(const Plan& plan) {
  using element = std::remove_cvref_t<typename Plan::element>;
  const auto reader = plan.source().connect();
  auto chain = ps::make_chain(plan, ps::source_node<std::remove_cvref_t<decltype(reader)>>{&reader}, 5);
  typename decltype(chain)::worker worker;
  std::vector<element> all;
  const auto orders = ps::make_sample_orders(plan);
  for (std::uint64_t i = 0; i < orders.size(); ++i) {
    const ps::sample_position at{{0, i}, orders.sample_at({0, i})};
    const auto sink = [&all](auto&& value) { all.push_back(value); };
    if (i % 2 == 0)
      chain.evaluate(at, worker, sink, ps::timed{});
    else
      chain.evaluate(at, worker, sink, ps::untimed{});
  }
  std::uint64_t timed_stages = 0;
  ps::detail::for_each_cost(
      worker, [&](std::size_t, const ps::stage_cost& cost) { timed_stages += cost.timed != 0 ? 1 : 0; });
  return std::pair(all, timed_stages);
}

/// A clock that advances only when work is simulated.
struct fake_clock : std::true_type {
  static inline std::uint64_t time = 0;
  static std::uint64_t now() noexcept { return time; }
  static void work(std::uint64_t nanoseconds) { time += nanoseconds; }
};

/// An expression whose writing takes `Cost`.
template <std::uint64_t Cost>
struct lazy {
  using unfinished = void;
  using value_type = int;
  static constexpr ps::extents static_shape{1};
  [[nodiscard]] static constexpr ps::extents shape() { return static_shape; }
  void write_to(int* into) const {
    fake_clock::work(Cost);
    *into = 1;
  }
  [[nodiscard]] ps::tensor_view<const int> finish() const { return {}; }
};

/// Shows up to three numbers at once, for 300, and one for 10.
struct run_reader {
  struct worker {};
  static constexpr ps::reader_traits traits = {.shows_contiguous = true};
  template <class Sink>
  void evaluate(ps::position at, worker&, Sink&& sink) const {
    fake_clock::work(10);
    sink(static_cast<int>(at.index));
  }
  template <class Sink>
  [[nodiscard]] std::uint64_t evaluate_run(ps::position first, std::uint64_t count, worker&,
                                           Sink&& sink) const {
    fake_clock::work(300);
    count = std::min<std::uint64_t>(count, 3);
    return sink(static_cast<int>(first.index), count) ? count : 0;
  }
};
/// Takes runs that begin with an even number, for 60.
struct run_stage {
  using penstock_part = ps::pointwise_tag;
  static constexpr bool reads_contiguous = true;
  template <class Call>
  int apply(int value, const Call&) const {
    return value;
  }
  template <class Sink>
  [[nodiscard]] bool apply_run(int first, Sink&& sink) const {
    fake_clock::work(60);
    return first % 2 == 0 && sink(first);
  }
};

/// A blob whose reading takes 1,000, and a sample of one.
struct slow_blob {
  using unfinished = void;
  [[nodiscard]] std::uint64_t size() const { return 1; }
  void read_into(ps::mutable_bytes) const { fake_clock::work(1000); }
  [[nodiscard]] ps::bytes_view finish() const {
    fake_clock::work(1000);
    return {};
  }
};
struct slow_sample {
  using is_open_sample = void;
  using blob_type = slow_blob;
  [[nodiscard]] std::string_view key() const { return "k"; }
  [[nodiscard]] std::size_t size() const { return 1; }
  [[nodiscard]] std::string_view name(std::size_t) const { return "npy"; }
  [[nodiscard]] blob_type member(std::size_t) const { return {}; }
};

/// Writes a value, and each field of a record, as a batch does.
struct writes {
  template <class V>
  void operator()(const V& value) const {
    int into = 0;
    if constexpr (ps::any_record<V>)
      [&]<std::size_t... Is>(std::index_sequence<Is...>) {
        ((*this)(get<Is>(value)), ...);
      }(std::make_index_sequence<V::size>{});
    else if constexpr (ps::blob<V>)
      value.read_into({});
    else if constexpr (ps::array_expression<V>)
      value.write_to(&into);
    else
      fake_clock::work(7);
  }
};

/// The time that the source and each stage took for one sample.
template <class Plan>
std::vector<std::uint64_t> costs_of(const Plan& plan) {
  const auto reader = plan.source().connect();
  auto chain = ps::make_chain(plan, ps::source_node<std::remove_cvref_t<decltype(reader)>>{&reader}, 5);
  typename decltype(chain)::worker worker;
  chain.evaluate({}, worker, writes{}, fake_clock{});
  std::vector<std::uint64_t> costs;
  ps::detail::for_each_cost(
      worker, [&](std::size_t, const ps::stage_cost& cost) { costs.push_back(cost.nanoseconds); });
  return costs;
}

template <std::uint64_t Apply, class Result>
constexpr auto made = [](const auto&) {
  fake_clock::work(Apply);
  return Result{};
};
using costs = std::vector<std::uint64_t>;

/// Passes on the value, unfinished as it is.
struct looks {
  using penstock_part = ps::pointwise_tag;
  template <class V, class Call>
  std::remove_cvref_t<V> apply(V&& value, const Call&) const {
    fake_clock::work(20);
    return std::forward<V>(value);
  }
};
using image = ps::record<ps::field<"image", lazy<500>>, ps::field<"label", int>>;

const auto numbers = ps::generated(4, [](std::uint64_t i) {
  fake_clock::work(3);
  return i;
});
const auto samples = ps::generated(4, [](std::uint64_t) {
  fake_clock::work(3);
  return slow_sample{};
});

}  // namespace

TEST_CASE("evaluation/stage_chain: the time to write an expression belongs to its stage") {
  const looks other;
  const auto all = ps::filter([](const auto&) {
    fake_clock::work(5);
    return true;
  });
  const auto none = ps::filter([](const auto&) {
    fake_clock::work(5);
    return false;
  });
  const auto expression = ps::map(made<10, lazy<500>>);
  CHECK(costs_of(numbers | expression | ps::batch(2)) == costs{3, 510});
  CHECK(costs_of(numbers | other | expression | ps::batch(2)) == costs{3, 20, 510});
  CHECK(costs_of(numbers | expression | other | all | ps::batch(2)) == costs{3, 510, 20, 5});
  CHECK(costs_of(numbers | expression | none | other) == costs{3, 10, 5, 0});
  CHECK(costs_of(numbers | expression | ps::map(made<10, lazy<70>>)) == costs{3, 10, 80});
  CHECK(costs_of(numbers | ps::map(made<10, image>) | other | ps::fields<"image"> | ps::batch(2)) ==
        costs{3, 510, 20, 0});
}

TEST_CASE("evaluation/stage_chain: a late read of a member belongs to the source, a copy to no stage") {
  CHECK(costs_of(samples | ps::fields<"npy"> | ps::batch(2)) == costs{1003, 0});
  CHECK(costs_of(samples | ps::fields<ps::optional<"npy">> | ps::batch(2)) == costs{1003, 0});
  CHECK(costs_of(samples | ps::fields<"npy"> | ps::map(made<10, lazy<500>>)) ==
        costs{3, 0, 1510});  // a map of whole values reads them itself
  CHECK(costs_of(numbers | ps::map(made<10, int>) | ps::batch(2)) == costs{3, 10});
  CHECK(costs_of(numbers | ps::map(made<10, std::vector<int>>) | ps::batch(2)) == costs{3, 10});
}

TEST_CASE(
    "evaluation/stage_chain: the time to write rows of expressions belongs to the stage that made them") {
  const auto some = ps::map([](const auto&) { return std::vector<lazy<300>>(2); });
  CHECK(costs_of(numbers | some | ps::unbatch) == costs{3, 0, 600});
}

TEST_CASE(
    "evaluation/stage_chain: value stages nest in the order written, and call a sink any number of times") {
  const auto plan = ps::from(first_ints(6)) | ps::map([](int x) { return x + 1; }) |
                    ps::filter([](int x) { return x % 2 == 0; }) |
                    ps::map([](int x) { return std::vector<int>(static_cast<std::size_t>(x), x); }) |
                    ps::unbatch | ps::batch(4);
  CHECK(evaluate_all(plan).first == std::vector<int>{2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 6, 6});
}

TEST_CASE("evaluation/stage_chain: timed samples are counted for the source and each stage") {
  const auto plan = ps::from(first_ints(8)) | ps::map([](int x) { return x; }) |
                    ps::map([](int x) { return x; }) | ps::batch(4);
  CHECK(evaluate_all(plan).second == 3);
}

TEST_CASE("evaluation/stage_chain: runs of samples are timed as all of their samples") {
  const run_reader reader;
  const ps::stage_node<ps::source_node<run_reader>, run_stage> chain{{&reader}, {}};
  static_assert(chain.has_runs);
  typename std::remove_cvref_t<decltype(chain)>::worker worker;
  std::vector<int> taken;
  const auto sink = [&](int first, std::uint64_t count) {
    fake_clock::work(7);
    taken.push_back(first);
    return count == 3;
  };
  CHECK(chain.evaluate_run({0, 4}, 5, worker, sink, fake_clock{}) == 3);
  CHECK(chain.evaluate_run({0, 7}, 5, worker, sink, fake_clock{}) == 0);  // the stage does not take it
  CHECK(chain.evaluate_run({0, 8}, 2, worker, sink, fake_clock{}) == 0);  // nor the sink
  CHECK(chain.evaluate_run({0, 0}, 3, worker, sink, ps::untimed{}) == 3);
  CHECK(taken == std::vector<int>{4, 8, 0});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> costs;
  ps::detail::for_each_cost(worker, [&](std::size_t, const ps::stage_cost& cost) {
    costs.emplace_back(cost.nanoseconds, cost.timed);
  });
  CHECK(costs == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{300, 3}, {67, 3}});
}
