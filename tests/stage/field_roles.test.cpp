// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/stage/field_roles.hpp>

#include <penstock/core/mapped_field.hpp>

#include "support/catch.hpp"

#include <array>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

namespace ps = penstock;

namespace {

struct adds_noise {
  int operator()(int x, ps::rng& random) const { return x + static_cast<int>(random.below(5)); }
  template <std::same_as<double> T>
  T operator()(T x) const {
    return x;
  }
};
struct half {
  template <class T>
  double operator()(T x) const {
    return static_cast<double>(x) / 2;
  }
};
/// Puts the number 3 in the place of vectors, and calls others themselves.
struct three_for_vectors {
  template <class F>
  static constexpr decltype(auto) function(const F& f) {
    if constexpr (std::is_same_v<F, std::vector<int>>)
      return 3;
    else
      return (f);
  }
};
struct following {
  using scratch = int;
};

static_assert(ps::detail::joint_streams<int, adds_noise, adds_noise, half, adds_noise> ==
                  std::array<std::uint64_t, 4>{1, 1, 0, 0},
              "what the last one gets is a double, for which it draws nothing");
static_assert(std::is_same_v<ps::detail::role_parts<ps::changed_field, adds_noise, half>::kept,
                             std::tuple<ps::detail::function_itself, ps::detail::function_itself>>,
              "a changed field keeps no function");
static_assert(std::is_same_v<ps::detail::role_parts<following, adds_noise>::kept, std::tuple<>> &&
                  std::is_same_v<ps::detail::role_parts<following, adds_noise>::scratch, int>,
              "a role that follows has a scratch, and keeps no function");

}  // namespace

TEST_CASE("stage/field_roles: a role keeps the functions that it puts in the place of others") {
  using parts = ps::detail::role_parts<three_for_vectors, std::vector<int>, adds_noise>;
  static_assert(std::is_same_v<parts::kept, std::tuple<int, ps::detail::function_itself>>);
  CHECK(std::get<0>(parts::keep({}, adds_noise{})) == 3);
}

TEST_CASE("stage/field_roles: a joint function refers to the function of the stage") {
  const adds_noise f;
  const ps::detail::joint_function<adds_noise, 2> joint{f};
  CHECK(&joint.called == &f);
  CHECK(joint.streams<double> == 2);
}
