// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/mistake.hpp>

#include "support/catch.hpp"

#include <penstock/core/pipe.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/map.hpp>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

namespace ps = penstock;

// Each sentence of the library has a program in tests/compile_fail that must fail with it; own_mistake.cpp is
// the program for the sentence of halve.

namespace mistake_test {

struct needs_a_number {
  using penstock_mistake = ps::about_element_tag;
  static consteval void explain(auto reached) {
    static_assert(ps::never<decltype(reached)>, "halve: the element is no number; write map(f) before it");
  }
};
struct halve_stage {
  using penstock_part = ps::pointwise_tag;
  template <class Call>
  double apply(double value, const Call&) const {
    return value / 2;
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (std::convertible_to<typename Context::element, double>)
      return ps::mistakes::none{};
    else
      return needs_a_number{};
  }
};
inline constexpr halve_stage halve{};

using numbers = decltype(ps::from(std::vector<int>{}));
using texts = decltype(ps::from(std::vector<std::string>{}));
using length_of = decltype(ps::map([](const std::string& s) { return s.size(); }));

static_assert(ps::mistake<needs_a_number> && ps::mistake<ps::mistakes::two_batches>,
              "a mistake of a user's stage is one like those of the library");
static_assert(!ps::mistake<ps::mistakes::none> && !ps::mistake<int>, "no mistake is not a mistake");
static_assert(ps::can_connect<numbers, halve_stage>, "a stage that finds nothing wrong can be connected");
static_assert(!ps::can_connect<texts, halve_stage>,
              "a stage that finds a mistake cannot, and asking compiles");
static_assert(ps::can_connect<decltype(ps::from(std::vector<std::string>{}) | length_of{}), halve_stage>,
              "a stage sees what reaches it, not what the source gives");
static_assert(std::is_same_v<ps::detail::mistake_of<texts, halve_stage>, needs_a_number>,
              "the mistake is the stage's own");
static_assert(
    std::is_same_v<ps::detail::mistake_of<texts, decltype(length_of{} | halve | ps::batch(2) | halve)>,
                   ps::mistakes::value_after_batch>,
    "what is wrong for every stage of a kind is asked before what the stage says");

}  // namespace mistake_test

TEST_CASE("core/mistake: a stage with a mistake of its own works if the mistake is not made") {
  std::vector<double> halves;
  for (auto&& b : (ps::from({1, 2, 3}) | mistake_test::halve | ps::batch(2)).epoch(0))
    for (const double x : b.values()) halves.push_back(x);
  CHECK(halves == std::vector<double>{0.5, 1, 1.5});
}

TEST_CASE("core/mistake: the first of several counts") {
  using ps::detail::first_mistake, ps::mistakes::none, mistake_test::needs_a_number;
  CHECK(std::is_same_v<first_mistake<>::type, none>);
  CHECK(std::is_same_v<first_mistake<none, none>::type, none>);
  CHECK(std::is_same_v<first_mistake<none, needs_a_number, ps::mistakes::no_source>::type, needs_a_number>);
}
