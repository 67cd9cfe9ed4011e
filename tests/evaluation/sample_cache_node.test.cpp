// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/sample_cache_node.hpp>

#include <penstock/evaluation/parts.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace sample_cache_node_test {

namespace ps = penstock;

TEST_CASE(
    "evaluation/sample_cache_node: evaluates what is before it once, timed or not, and says what it has") {
  std::uint64_t calls = 0;
  const auto plan = ps::generated(100, [](std::uint64_t i) { return i; }) |
                    ps::map([&calls](std::uint64_t i) {
                      ++calls;
                      return i * 3;
                    }) |
                    ps::keep_in_memory(1 << 20) | ps::map([](std::uint64_t i) { return i + 1; });
  const auto reader = ps::connect_source_of(plan);
  using node = ps::source_node<std::remove_cvref_t<decltype(reader)>>;
  const auto chain = ps::make_chain(plan, node{&reader}, 0);
  static_assert(ps::keeps_samples<std::remove_cvref_t<decltype(chain)>>);
  static_assert(!ps::keeps_samples<node>);
  typename std::remove_cvref_t<decltype(chain)>::worker worker;
  std::uint64_t seen = 0;
  const auto sink = [&seen](std::uint64_t v) { seen = v; };

  CHECK(!ps::is_kept_in(chain, {0, 7}));
  chain.evaluate({{0, 7}, {0, 7}}, worker, sink, ps::untimed{});
  CHECK(seen == 22);
  CHECK(ps::is_kept_in(chain, {0, 7}));
  CHECK(ps::is_kept_in(chain, {5, 7}));
  chain.evaluate({{1, 7}, {0, 7}}, worker, sink, ps::untimed{});
  CHECK(calls == 1);
  chain.evaluate({{2, 7}, {0, 7}}, worker, sink, ps::timed{});
  CHECK(seen == 22);
  CHECK(calls == 1);
  chain.evaluate({{2, 8}, {0, 8}}, worker, sink, ps::timed{});
  CHECK(seen == 25);
  CHECK(calls == 2);
  chain.evaluate({{3, 0}, {0, 7}}, worker, sink, ps::untimed{});
  CHECK(seen == 22);
  chain.evaluate({{3, 1}, {0, 9}}, worker, sink, ps::untimed{});
  CHECK(seen == 28);
  CHECK(calls == 3);

  const ps::kept_counters kept = ps::kept_in(chain);
  CHECK(kept.samples == 3);
  CHECK(kept.hits == 3);
  std::uint64_t timed = 0;
  ps::detail::for_each_cost(worker, [&](std::size_t number, const ps::stage_cost& cost) {
    if (number == 2) timed = cost.timed;
  });
  CHECK(timed == 2);
}

}  // namespace sample_cache_node_test
