// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/evaluation/stage_chain.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/unbatch.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <type_traits>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

template <class Plan>
auto evaluate_all(const Plan& plan) {
  using element = std::remove_cvref_t<typename Plan::element>;
  const auto reader = plan.source().open();
  const auto orders = ps::make_sample_orders(plan);
  const auto binding = orders.bind(0, 0, orders.size());
  auto chain = ps::make_chain(
      plan,
      ps::source_node<std::remove_cvref_t<decltype(reader)>, std::remove_cvref_t<decltype(binding)>>{&reader},
      5);
  typename decltype(chain)::worker worker;
  ps::detail::innermost(worker).binding = &binding;
  std::vector<element> all;
  for (std::uint64_t i = 0; i < orders.size(); ++i) {
    const auto sink = [&all](auto&& value) { all.push_back(value); };
    if (i % 2 == 0)
      chain.evaluate({0, i}, worker, sink, ps::timed{});
    else
      chain.evaluate({0, i}, worker, sink, ps::untimed{});
  }
  std::uint64_t timed_stages = 0;
  ps::detail::for_each_cost(
      worker, [&](std::size_t, const ps::stage_cost& cost) { timed_stages += cost.timed != 0 ? 1 : 0; });
  return std::pair(all, timed_stages);
}

}  // namespace

TEST_CASE(
    "run/chain: value stages are nested in the order written, and a sink is called none, one or many times") {
  const auto plan = ps::from(first_ints(6)) | ps::map([](int x) { return x + 1; }) |
                    ps::filter([](int x) { return x % 2 == 0; }) |
                    ps::map([](int x) { return std::vector<int>(static_cast<std::size_t>(x), x); }) |
                    ps::unbatch | ps::batch(4);
  CHECK(evaluate_all(plan).first == std::vector<int>{2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 6, 6});
}

TEST_CASE("run/chain: timed samples are counted for the source and each stage") {
  const auto plan = ps::from(first_ints(8)) | ps::map([](int x) { return x; }) |
                    ps::map([](int x) { return x; }) | ps::batch(4);
  CHECK(evaluate_all(plan).second == 3);
}
