// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/pipe.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct mutable_function {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: the function would be shared by all workers and must be callable when const; "
                  "remove `mutable` and take random numbers from an rng& second parameter");
  }
};
/// Shows in a compiler's message what the function receives, and what it expects.
template <class Gets, class Wants>
struct wrong_type {
  using penstock_mistake = about_element_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>,
                  "penstock: this stage's function cannot be called with what arrives here: it gets Gets and "
                  "wants Wants, the types that this error names in wrong_type<Gets, Wants>");
  }
};
struct returns_nothing {
  using penstock_mistake = about_expression_tag;
  template <class Reached>
  static consteval void explain() {
    static_assert(never<Reached>, "penstock: map's function returns nothing; return the value to pass on");
  }
};

}  // namespace mistakes

/// The explicit address of a random stage: `map(f, key("crop"))` draws the same numbers wherever you put the
/// stage.
struct key {
  std::uint64_t hash = 0;
  constexpr key() = default;
  constexpr explicit key(std::string_view text) {
    hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash |= 1;
  }
};

namespace detail {

/// A function that takes unfinished values says so with a member alias; others receive finished ones.
template <class F>
concept takes_unfinished = requires { typename F::accepts_unfinished; };

template <class F, class V>
using argument_of = std::conditional_t<takes_unfinished<F>, V&&, finished<V>>;

template <class F, class V>
concept random_function =
    !std::invocable<const F&, argument_of<F, V>> && std::invocable<const F&, argument_of<F, V>, rng&>;

/// The first parameter of a function that is neither a template nor overloaded.
template <class F>
struct parameter_of {};
template <class R, class First, class... Rest>
struct parameter_of<R (*)(First, Rest...)> {
  using type = First;
};
template <class R, class C, class First, class... Rest>
struct parameter_of<R (C::*)(First, Rest...) const> {
  using type = First;
};
template <class R, class C, class First, class... Rest>
struct parameter_of<R (C::*)(First, Rest...) const noexcept> {
  using type = First;
};
template <class F>
  requires requires { &F::operator(); }
struct parameter_of<F> : parameter_of<decltype(&F::operator())> {};

struct call_operator {
  void operator()() const;
};
template <class F>
struct two_call_operators : F, call_operator {};
/// A function object whose body is compiled when it is called: a template, or one of several.
template <class F>
concept late_function = std::is_class_v<F> && !std::is_final_v<F> && !requires {
  typename parameter_of<F>::type;
} && !requires { &two_call_operators<F>::operator(); };

struct anything {
  void operator()(...) const;
};
template <class F>
struct or_anything : F {
  using F::operator();
  void operator()(...) const;
};
/// Chooses `F` where its parameters suit. So it fails only where a body has an error, which the compiler
/// shows.
template <class F, class V, class... More>
using compiled_call =
    decltype(std::declval<const std::conditional_t<late_function<F>, or_anything<F>, anything>&>()(
        std::declval<argument_of<F, V>>(), std::declval<More>()...));

template <class F, class V>
struct wrong_call {
  using type = mistakes::wrong_argument;
};
template <class F, class V>
  requires(!std::is_member_pointer_v<F>) && requires { typename parameter_of<F>::type; }
struct wrong_call<F, V> {
  using type = mistakes::wrong_type<std::remove_cvref_t<argument_of<F, V>>, typename parameter_of<F>::type>;
};

/// What a function returns for an element, or why it cannot be called with it.
template <class F, class V>
struct function_check {
  using argument = argument_of<F, V>;
  using result = void;
  using wrong = std::conditional_t<std::invocable<F&, argument> || std::invocable<F&, argument, rng&>,
                                   mistakes::mutable_function, typename wrong_call<F, V>::type>;
};
template <class F, class V>
  requires std::invocable<const F&, argument_of<F, V>>
struct function_check<F, V> {
  using result = std::invoke_result_t<const F&, argument_of<F, V>>;
  using wrong = mistakes::none;
};
template <class F, class V>
  requires random_function<F, V>
struct function_check<F, V> {
  using result = std::invoke_result_t<const F&, argument_of<F, V>, rng&>;
  using wrong = mistakes::none;
};

/// The mistake of a function that should turn an element into a value.
template <class F, class V>
consteval auto diagnose_function() {
  using check = function_check<F, V>;
  if constexpr (is_right<typename check::wrong> && std::is_void_v<typename check::result>)
    return mistakes::returns_nothing{};
  else
    return typename check::wrong{};
}

/// Calls a user's function with the value, finished unless the function asks otherwise, and with random
/// numbers if it takes them.
template <class F, class V, class Call>
constexpr decltype(auto) call_function(const F& f, V&& value, const Call& c) {
  if constexpr (std::is_member_pointer_v<F>) {
    if constexpr (random_function<F, V>) {
      rng random = c.random();
      return call_member(f, penstock::finish(std::forward<V>(value)), random);
    } else {
      return call_member(f, penstock::finish(std::forward<V>(value)));
    }
  } else if constexpr (takes_unfinished<F>) {
    if constexpr (random_function<F, V>) {
      rng random = c.random();
      return f(std::forward<V>(value), random);
    } else {
      return f(std::forward<V>(value));
    }
  } else if constexpr (random_function<F, V>) {
    rng random = c.random();
    return f(penstock::finish(std::forward<V>(value)), random);
  } else {
    return f(penstock::finish(std::forward<V>(value)));
  }
}

}  // namespace detail

/// Replaces each sample with the result of a function. Made by `map(f)`.
///
/// In: any element; unfinished ones are finished first, unless `F` has a member alias `accepts_unfinished`.
/// Out: f's result; a view it returns must outlive the call (no pointers into locals). Pointwise; keeps all
/// five guarantees.
/// `f(sample)` or `f(sample, rng&)` must be callable when const: one object serves all workers at once; a
/// pointer to a member will do, `map(&point::x)`. The
/// generator is keyed by the sample's position and this stage's number among the random stages, or by
/// `key("...")`.
/// Cost: the call, inlined. Throws what f throws, at the sample's place in the sequence.
///
///     auto squares = from({1, 2, 3}) | map([](int x) { return x * x; });
template <class F>
struct map_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  [[no_unique_address]] F function;
  key address;

  using penstock_function = F;
  template <class V, class... More>
  using called_with = detail::compiled_call<F, V, More...>;
  template <class V, class... More>
  using must_be_called_with =
      decltype(std::declval<const F&>()(std::declval<detail::argument_of<F, V>>(), std::declval<More>()...));
  template <class V>
  static constexpr bool draws = detail::random_function<F, V>;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  template <class V, class Call>
  constexpr decltype(auto) apply(V&& value, const Call& c) const {
    return detail::call_function(function, std::forward<V>(value), c);
  }
  template <class Context>
  static consteval auto diagnose() {
    return detail::diagnose_function<F, typename Context::element>();
  }
};

/// Replaces one field of each record with the result of a function. Made by `map<"name">(f)`.
///
/// In: a record with that field. Out: the same record with the field's new type. Other fields pass untouched
/// and unread. Otherwise like `map`.
template <class Name, class F>
struct map_field_stage {
  using penstock_part = pointwise_tag;
  static constexpr std::string_view stage_name = "map";
  [[no_unique_address]] F function;
  key address;

  template <class R>
  static constexpr bool draws = detail::random_function<
      F, std::tuple_element_t<std::remove_cvref_t<R>::template index_of<Name>, std::remove_cvref_t<R>>>;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }

  template <any_record R, class Call>
  constexpr auto apply(R&& sample, const Call& c) const {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return make<R>(detail_field<R, Is>(std::forward<R>(sample), c)...);
    }(std::make_index_sequence<std::remove_cvref_t<R>::size>{});
  }
  [[nodiscard]] std::string describe() const { return detail::text({"map<\"", Name::value, "\">"}); }

  template <class Context>
  static consteval auto diagnose() {
    using element = std::remove_cvref_t<typename Context::element>;
    if constexpr (!has_field<element, Name>)
      return mistakes::no_such_field{};
    else
      return detail::diagnose_function<F, std::tuple_element_t<element::template index_of<Name>, element>>();
  }

 private:
  template <class R, std::size_t I, class Call>
  constexpr decltype(auto) detail_field(R&& sample, const Call& c) const {
    if constexpr (I == std::remove_cvref_t<R>::template index_of<Name>)
      return detail::call_function(function, get<I>(std::forward<R>(sample)), c);
    else
      return get<I>(std::forward<R>(sample));
  }
  template <class R, std::size_t... Is, class... Ts>
  static constexpr auto make_with(std::index_sequence<Is...>, Ts&&... values) {
    using from_type = std::remove_cvref_t<R>;
    return record<
        basic_field<typename from_type::template field_at<Is>::name_type, std::remove_cvref_t<Ts>>...>(
        std::forward<Ts>(values)...);
  }
  template <class R, class... Ts>
  static constexpr auto make(Ts&&... values) {
    return make_with<R>(std::make_index_sequence<sizeof...(Ts)>{}, std::forward<Ts>(values)...);
  }
};

template <class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_stage<F>{std::move(function), address};
}
template <fixed_string Name, class F>
[[nodiscard]] constexpr auto map(F function, key address = {}) {
  return map_field_stage<name_of<Name>, F>{std::move(function), address};
}

}  // namespace penstock::inline v0_1
