// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/stage/allow_empty.hpp>
#include <penstock/stage/memory.hpp>

#include "support/catch.hpp"
#include "support/engine_test.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The oracle of resuming: stop anywhere, resume from the state's text, get the rest.
namespace engine_test {

/// Random numbers must be reproduced too.
inline constexpr auto noisy = [](std::uint64_t x, penstock::rng& r) {
  dawdle(x);
  return x * 1000 + r.below(1000);
};
inline constexpr auto identity = [](std::uint64_t i) { return i; };
inline constexpr auto odd_thirds = [](std::uint64_t x) { return x % 3 == 1; };

/// The elements of a run, one by one, from its position to the end of an epoch, with the state after each.
struct trace {
  std::vector<numbers> elements;
  std::vector<std::string> states;
};
template <class Plan, class... From>
trace follow(const Plan& plan, std::uint64_t epochs, bool with_states, const From&... from) {
  trace all;
  auto run = (plan | penstock::allow_empty).open(from...);
  for (auto epoch : run.epochs(epochs)) {
    for (auto&& element : epoch) {
      if constexpr (requires { element.valid_size(); })
        all.elements.push_back(engine_test::values_of(element));
      else
        all.elements.push_back({static_cast<std::uint64_t>(element)});
      if (with_states) all.states.push_back(to_string(run.state()));
    }
  }
  return all;
}

/// The oracle: after every element, or every `stride`-th, a run opened with the state delivers the rest of
/// the uninterrupted run.
template <class Plan, class Again>
void check_all_stops(const Plan& plan, const Again& again, std::uint64_t epochs, std::size_t stride = 1) {
  const trace whole = follow(plan, epochs, true);
  auto fresh = (plan | penstock::allow_empty).open();
  CHECK(follow(again, epochs, false, penstock::state_from_string(to_string(fresh.state()))).elements ==
        whole.elements);
  for (std::size_t i = 0; i < whole.states.size(); i += stride) {
    INFO("after element " << i << ": " << whole.states[i]);
    const trace rest = follow(again, epochs, i % 5 == 0, penstock::state_from_string(whole.states[i]));
    REQUIRE(rest.elements == std::vector<numbers>(whole.elements.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                                  whole.elements.end()));
    for (std::size_t j = 0; j < rest.states.size(); ++j) REQUIRE(rest.states[j] == whole.states[i + 1 + j]);
  }
}
template <class Plan>
void check_all_stops(const Plan& plan, std::uint64_t epochs = 2) {
  check_all_stops(plan | penstock::workers(2), plan | penstock::workers(0), epochs);
  check_all_stops(plan | penstock::workers(0),
                  plan | penstock::workers(3) | penstock::prefetch(5) | penstock::memory(1 << 20), epochs, 2);
}

/// Checks that after `stop` batches on each of `before` ranks, `after` ranks read the rest of the global
/// steps.
template <class Make>
void check_elastic(Make make, std::uint64_t global, std::uint64_t before, std::uint64_t after,
                   std::size_t stop) {
  const auto alone = follow(make(0, 1, global), 2, false).elements;
  for (std::uint64_t from = 0; from < before; ++from) {
    auto first = make(from, before, global / before);
    const auto states = follow(first | penstock::workers(2), 2, true).states;
    REQUIRE(stop < states.size());
    std::vector<numbers> steps;
    for (std::uint64_t rank = 0; rank < after; ++rank) {
      const auto rest = follow(make(rank, after, global / after) | penstock::workers(1), 2, false,
                               penstock::state_from_string(states[stop]))
                            .elements;
      if (steps.size() < rest.size()) steps.resize(rest.size());
      CHECK(rest.size() == steps.size());
      for (std::size_t i = 0; i < rest.size(); ++i)
        steps[i].insert(steps[i].end(), rest[i].begin(), rest[i].end());
    }
    REQUIRE(steps.size() + stop + 1 == alone.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      numbers wanted = alone[stop + 1 + i];
      std::sort(wanted.begin(), wanted.end());
      std::sort(steps[i].begin(), steps[i].end());
      CHECK(steps[i] == wanted);
    }
  }
}

}  // namespace engine_test
