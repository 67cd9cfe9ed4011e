// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/functions.hpp>

#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// Remembers the sum of what it saw, for one worker.
struct sum_so_far {
  using accepts_call = void;
  struct scratch {
    long sum = 0;
  };
  long operator()(int x, const ps::call<scratch>& c) const { return c.scratch.sum += x; }
};

struct drawing {
  using accepts_call = void;
  template <class>
  static constexpr bool uses_random = true;
  template <class Scratch>
  bool operator()(int, const ps::call<Scratch>& c) const {
    return c.random().chance(0.5);
  }
};

struct own_mistake {
  using penstock_mistake = ps::about_element_tag;
};
struct picky {
  using accepts_call = void;
  using wrong_argument = own_mistake;
  int operator()(int x, const ps::call<ps::detail::function_scratch<picky>>&) const { return x; }
};
struct picky_by_type {
  using accepts_call = void;
  template <class>
  using wrong_argument_for = own_mistake;
  int operator()(int x, const ps::call<ps::detail::function_scratch<picky_by_type>>&) const { return x; }
};

}  // namespace

TEST_CASE("stage/functions: a function with memory has a scratch per worker") {
  const auto plan = ps::from(std::vector<int>{1, 2, 3, 4}) | ps::map(sum_so_far{}) | ps::batch(2);
  CHECK(values_of(plan, 0) == std::vector<long>{1, 3, 6, 10});
}

TEST_CASE("stage/functions: a function with memory draws the numbers of its stage") {
  const auto numbers = ps::from(first_ints(200)) | ps::seed(5);
  const auto by_hand = [](int, ps::rng& random) { return random.chance(0.5); };
  for (const unsigned workers : {0u, 3u}) {
    CHECK(values_of(numbers | ps::map(drawing{}) | ps::batch(16), workers) ==
          values_of(numbers | ps::map(by_hand) | ps::batch(16), 0));
    CHECK(values_of(numbers | ps::filter(drawing{}) | ps::batch(16), workers) ==
          values_of(numbers | ps::filter(by_hand) | ps::batch(16), 0));
  }
}

TEST_CASE("stage/functions: a function with memory says what is wrong with its argument") {
  using wrong = ps::detail::function_check<picky, const char*>::wrong;
  STATIC_REQUIRE(std::is_same_v<wrong, own_mistake>);
  using by_type = ps::detail::function_check<picky_by_type, const char*>::wrong;
  STATIC_REQUIRE(std::is_same_v<by_type, own_mistake>);
  using plain = ps::detail::function_check<sum_so_far, const char*>::wrong;
  STATIC_REQUIRE(std::is_same_v<plain, ps::mistakes::wrong_argument>);
  STATIC_REQUIRE(ps::detail::is_right<ps::detail::function_check<picky, int>::wrong>);
}
