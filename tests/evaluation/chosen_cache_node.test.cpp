// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/chosen_cache_node.hpp>

#include <penstock/evaluation/kept_places.hpp>
#include <penstock/evaluation/stage_chain.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/keep_in_memory.hpp>
#include <penstock/stage/map.hpp>

#include "support/catch.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace chosen_cache_node_test {

namespace ps = penstock;

namespace {

/// Two numbers that are not computed yet, and that can be had smaller, as a JPEG with `scales`.
struct halvable {
  using unfinished = void;
  using value_type = std::uint64_t;
  static constexpr ps::extents static_shape{std::size_t{2}};
  std::uint64_t number = 0;
  unsigned halvings = 0;

  [[nodiscard]] static constexpr ps::extents shape() noexcept { return static_shape; }
  void write_to(std::uint64_t* into) const { into[0] = into[1] = number; }
  [[nodiscard]] std::span<const std::uint64_t> finish() const {
    thread_local std::array<std::uint64_t, 2> both;
    write_to(both.data());
    return both;
  }
  [[nodiscard]] unsigned max_halvings() const noexcept { return halvings; }
};

}  // namespace

TEST_CASE("evaluation/chosen_cache_node: keeps at the chosen place alone, and says what it has") {
  std::uint64_t calls = 0;
  const auto reach = [&calls](std::uint32_t place, unsigned halvings, auto f) {
    const auto plan = ps::generated(100, [](std::uint64_t i) { return i; }) |
                      ps::map([&calls, halvings](std::uint64_t i) {
                        ++calls;
                        return halvable{i * 3, halvings};
                      }) |
                      ps::keep_in_memory(1 << 20, ps::keep_at{place}) |
                      ps::map([](std::span<const std::uint64_t> both) { return both[0] + both[1]; });
    const auto reader = ps::connect_source_of(plan);
    using node = ps::source_node<std::remove_cvref_t<decltype(reader)>>;
    const auto chain = ps::make_chain(plan, node{&reader}, 0);
    typename std::remove_cvref_t<decltype(chain)>::worker worker;
    static_assert(std::remove_cvref_t<decltype(chain)>::depth == 3);  // stages of the plan, not places
    f(chain, [&](std::uint64_t i, auto timing) {
      std::uint64_t seen = 0;
      chain.evaluate(
          {{0, i}, {0, i}}, worker, [&seen](std::uint64_t v) { seen = v; }, timing);
      std::size_t costs = 0;
      ps::detail::for_each_cost(worker, [&](std::size_t number, const ps::stage_cost&) { costs += number; });
      CHECK(costs == 0 + 1 + 2 + 3);
      return seen;
    });
  };
  for (const std::uint32_t place : {1u, 2u})
    reach(place, 0, [&](const auto& chain, const auto& at) {
      calls = 0;
      CHECK(!ps::is_kept_in(chain, {0, 7}));
      CHECK(at(7, ps::untimed{}) == 42);
      CHECK(at(7, ps::untimed{}) == 42);
      CHECK(at(7, ps::timed{}) == 42);
      CHECK(at(8, ps::timed{}) == 48);
      CHECK(ps::is_kept_in(chain, {0, 7}));
      CHECK(calls == (place == 1 ? 4u : 2u));
      CHECK(ps::kept_in(chain).samples == 2);
      CHECK(ps::kept_in(chain).hits == 2);
    });
  // What may yet be had smaller is never kept, so that values do not depend on the place.
  reach(2, 1, [&](const auto& chain, const auto& at) {
    CHECK(at(7, ps::untimed{}) == 42);
    CHECK(at(7, ps::timed{}) == 42);
    CHECK(ps::kept_in(chain).samples == 0);
  });
  reach(0, 1, [&](const auto& chain, const auto& at) {
    for (std::uint64_t i = 0; i < 100; ++i) CHECK(at(i, ps::timed{}) == 6 * i);
    const ps::kept_choice choice = ps::kept_in(chain).choices.at(0);
    CHECK(choice.places.at(1).differs);
    CHECK(choice.chosen != ps::kept_choice::undecided);
    CHECK(choice.chosen != 1);
  });
}

TEST_CASE("evaluation/chosen_cache_node: what it kept is read again once the place is given up") {
  const auto source = ps::generated(100, [](std::uint64_t i) { return i; });
  const auto reader = ps::connect_source_of(source | ps::map([](std::uint64_t i) { return i; }));
  using up = ps::source_node<std::remove_cvref_t<decltype(reader)>>;
  const ps::shared<ps::detail::place_choice> choice(new ps::detail::place_choice(1 << 20, 1000));
  CHECK(choice->add("generated") == 1);
  choice->begin(0);
  for (std::uint32_t i = 0; i < ps::detail::place_choice::max_rounds; ++i) {
    choice->measured(0, 1'000'000, 0);
    choice->measured(1, 1000, 8);
  }
  CHECK(choice->next() == ps::detail::place_turn{1, false});
  using node = ps::detail::chosen_cache_node<up, std::uint64_t, 1>;
  const node chain(up{&reader}, 1 << 20, choice);
  node::worker worker;
  worker.turn_here(choice->next());
  chain.evaluate(
      {{0, 7}, {0, 7}}, worker, [](std::uint64_t) {}, ps::untimed{});
  CHECK(ps::is_kept_in(chain, {0, 7}));
  for (std::uint32_t i = 0; i < ps::detail::place_choice::max_rounds; ++i) choice->shown(1'000'000);
  CHECK(choice->next() == ps::detail::place_turn{0, false});
  CHECK_FALSE(ps::is_kept_in(chain, {0, 7}));
}

}  // namespace chosen_cache_node_test
