// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/stage/function_chain.hpp>

#include <array>

/// What a `map` of several fields makes of its functions for each of them; see `core/mapped_field.hpp`.
namespace penstock::inline v0_1::detail {

/// Whether a role follows functions without calling them.
template <class Role>
concept follows = requires { typename Role::scratch; };
template <class F>
concept moves_places = requires { typename F::moves_places; };
template <class F>
concept knows_places = moves_places<F> || requires { typename F::keeps_places; };
/// An image, or many that are alike, as the frames of a clip.
template <class V>
concept sized_image = requires { typename std::remove_cvref_t<V>::is_lazy_image; } ||
                      requires { typename std::remove_cvref_t<V>::each_type::is_lazy_image; };

template <class V, class F, class... Rest>
constexpr void count_streams(std::uint64_t* of_each) {
  using check = chain_check<V, F, Rest...>;
  *of_each = streams_of<F, V>();
  if constexpr (sizeof...(Rest) != 0 && !check::stops)
    count_streams<typename check::here::result, Rest...>(of_each + 1);
}
/// The streams of random numbers that each function needs, for the first field.
template <class First, class... Fs>
inline constexpr auto joint_streams = [] {
  std::array<std::uint64_t, sizeof...(Fs)> of_each{};
  count_streams<First, Fs...>(of_each.data());
  return of_each;
}();

/// A function of the stage for one field of several; it counts as drawing what it draws for the first field.
/// It refers to the function: what that returns may point into it.
template <class F, std::uint64_t Streams>
struct joint_function {
  using accepts_call = void;
  using scratch = function_scratch<F>;
  template <class>
  static constexpr std::uint64_t streams = Streams;
  template <class>
  static constexpr bool uses_random = Streams != 0;
  template <class V>
  using wrong_argument_for = typename function_check<F, V>::wrong;

  const F& called;

  template <class V>
    requires(is_right<wrong_argument_for<V>>)
  constexpr decltype(auto) operator()(V&& value, const call<scratch>& c) const {
    return call_function(called, std::forward<V>(value), c);
  }
};

/// A function that is called itself, so that nothing is kept in its place.
struct function_itself {};
template <class Role, class F>
using called_in_role = decltype(Role::function(std::declval<const F&>()));
/// What a stage has for one field: scratch, and the functions that the role puts in the place of others.
template <class Role, class... Fs>
struct role_parts {
  using scratch = std::tuple<function_scratch<std::remove_cvref_t<called_in_role<Role, Fs>>>...>;
  using kept = std::tuple<std::conditional_t<std::is_reference_v<called_in_role<Role, Fs>>, function_itself,
                                             called_in_role<Role, Fs>>...>;
  static constexpr kept keep(const Fs&... functions) { return kept(keep_one(functions)...); }

 private:
  template <class F>
  static constexpr auto keep_one([[maybe_unused]] const F& f) {
    if constexpr (std::is_reference_v<called_in_role<Role, F>>)
      return function_itself{};
    else
      return Role::function(f);
  }
};
template <follows Role, class... Fs>
struct role_parts<Role, Fs...> {
  using scratch = typename Role::scratch;
  using kept = std::tuple<>;
  static constexpr kept keep(const Fs&...) { return {}; }
};

}  // namespace penstock::inline v0_1::detail
