// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/random.hpp>
#include <penstock/stage/functions.hpp>

#include <tuple>

namespace penstock::inline v0_1 {

namespace detail {

/// The number of streams of random numbers that a function needs for a value.
template <class F, class V>
consteval std::uint64_t streams_of() {
  if constexpr (requires { F::template streams<V>; })
    return F::template streams<V>;
  else
    return function_uses_random<F, V> ? 1 : 0;
}

/// The call of a function that comes after others, which drew `drawn` streams of random numbers.
template <class Scratch, class Call>
constexpr call<Scratch> call_after(const Call& c, std::uint64_t drawn, Scratch& scratch) noexcept {
  return {c.at, c.piece, c.seed, drawn == 0 ? c.stream : mix64(mix64(c.stream) + drawn), scratch};
}

/// Checks functions one after another, each with what the one before it returns.
template <class V, class... Fs>
struct chain_check {
  using result = V;
  using wrong = mistakes::none;
  static constexpr std::uint64_t streams = 0;
};
template <class V, class F, class... Rest>
struct chain_check<V, F, Rest...> {
  using here = function_check<F, V>;
  static constexpr bool right = is_right<typename here::wrong>;
  static constexpr bool stops = !right || std::is_void_v<typename here::result>;
  using rest =
      typename std::conditional_t<stops, std::type_identity<chain_check<void>>,
                                  std::type_identity<chain_check<typename here::result, Rest...>>>::type;
  using wrong =
      std::conditional_t<!right, typename here::wrong,
                         std::conditional_t<stops, mistakes::returns_nothing, typename rest::wrong>>;
  using result = typename rest::result;
  static constexpr std::uint64_t streams = streams_of<F, V>() + rest::streams;
};

/// Whether a function makes a record of several fields, and so has no place in a field. It says so with a
/// member alias `makes_fields`.
template <class F>
inline constexpr bool makes_fields = requires { typename F::makes_fields; };

}  // namespace detail

/// Several functions called one after another, as one function: what `map(f, g, ...)` makes. Each has its own
/// scratch and its own random numbers, which depend on how many functions before it draw. A result that is a
/// reference into what a function before it returned is copied; a view of that must not be returned.
template <class... Fs>
class function_chain {
 public:
  using accepts_call = void;
  using scratch = std::tuple<detail::function_scratch<Fs>...>;
  template <class V>
  static constexpr std::uint64_t streams = detail::chain_check<V, Fs...>::streams;
  template <class V>
  static constexpr bool uses_random = streams<V> != 0;
  template <class V>
  using wrong_argument_for = typename detail::chain_check<V, Fs...>::wrong;

  constexpr explicit function_chain(Fs... functions) : functions_(std::move(functions)...) {}

  template <class V>
    requires(detail::is_right<wrong_argument_for<V>>)
  constexpr decltype(auto) operator()(V&& value, const call<scratch>& c) const {
    return call_from<0, 0, false>(std::forward<V>(value), c);
  }
  /// Calls use(f) for each function.
  constexpr void each(const auto& use) const {
    std::apply([&use](const auto&... one) { (use(one), ...); }, functions_);
  }

 private:
  /// Calls function `I` and those after it. Those before it drew `Drawn` streams of random numbers;
  /// `Temporary`
  /// is whether `value` may refer to what one of them returned, which is about to go.
  template <std::size_t I, std::uint64_t Drawn, bool Temporary, class V>
  constexpr decltype(auto) call_from(V&& value, const call<scratch>& c) const {
    using function = std::tuple_element_t<I, std::tuple<Fs...>>;
    using result = typename detail::function_check<function, V>::result;
    const auto own = detail::call_after(c, Drawn, std::get<I>(c.scratch));
    if constexpr (I + 1 != sizeof...(Fs)) {
      return call_from < I + 1, Drawn + detail::streams_of<function, V>(),
             Temporary ||
                 !std::is_reference_v < result >>
                     (detail::call_function(std::get<I>(functions_), std::forward<V>(value), own), c);
    } else if constexpr (Temporary) {
      return std::remove_cvref_t<result>(
          detail::call_function(std::get<I>(functions_), std::forward<V>(value), own));
    } else {
      return detail::call_function(std::get<I>(functions_), std::forward<V>(value), own);
    }
  }

  [[no_unique_address]] std::tuple<Fs...> functions_;
};

template <class... Fs>
inline constexpr bool detail::makes_fields<function_chain<Fs...>> =
    detail::makes_fields<std::tuple_element_t<sizeof...(Fs) - 1, std::tuple<Fs...>>>;

}  // namespace penstock::inline v0_1
