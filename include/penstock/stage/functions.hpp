// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>

#include <utility>

/// How `map` and `filter` call the functions that they are given.
namespace penstock::inline v0_1 {

namespace mistakes {

struct mutable_function : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: the function would be shared by all workers and must be callable when const; "
                  "remove `mutable` and take random numbers from an rng& second parameter");
  }
};
/// Shows in a compiler's message what the function receives, and what it expects.
template <class Gets, class Wants>
struct wrong_type : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this stage's function cannot be called with what arrives here: it gets Gets and "
                  "wants Wants, the types that this error names in wrong_type<Gets, Wants>");
  }
};
struct several_parameters : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: a stage calls its function with one argument, the sample (and an rng& for random "
        "numbers), and this function has more parameters; take the fields of a record inside it: "
        "map([](const auto& sample) { return f(get<\"a\">(sample), get<\"b\">(sample)); })");
  }
};
struct returns_nothing : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: map's function returns nothing; return the value to pass on");
  }
};

}  // namespace mistakes

namespace detail {

/// A function that takes unfinished values says so with a member alias; others receive finished ones.
template <class F>
concept takes_unfinished = requires { typename F::accepts_unfinished; };

/// A function with memory: it has a scratch per worker, takes values as they are, and gets the call of its
/// stage as its second parameter. It says so with a member alias.
template <class F>
concept accepts_call = requires { typename F::accepts_call; };

/// Many parts that are alike, as the frames of a clip. A function with memory that takes one part, an
/// `each_type`, and not all of them, is called once, for all: by `with(f, call)` of the value.
template <class V>
concept alike_parts = requires { typename std::remove_cvref_t<V>::each_type; };
template <alike_parts V>
using each_of = const typename std::remove_cvref_t<V>::each_type&;

template <class F>
using function_scratch =
    typename scratch_or<std::conditional_t<accepts_call<F>, F, nothing_for<F>>, nothing_for<F>>::type;

template <class F, class V>
using argument_of = std::conditional_t<takes_unfinished<F> || accepts_call<F>, V&&, finished<V>>;

template <class F, class V>
concept random_function = !accepts_call<F> && !std::invocable<const F&, argument_of<F, V>> &&
                          std::invocable<const F&, argument_of<F, V>, rng&>;

template <class F, class V>
concept function_uses_random =
    random_function<F, V> || (accepts_call<F> && requires { requires F::template uses_random<V>; });

/// The first parameter of a function that is neither a template nor overloaded, and what follows it.
template <class First, class... Rest>
struct parameters {
  using type = First;
  using more = light_tuple<Rest...>;
};
template <class F>
struct parameter_of {};
template <class R, class First, class... Rest>
struct parameter_of<R (*)(First, Rest...)> : parameters<First, Rest...> {};
template <class R, class C, class First, class... Rest>
struct parameter_of<R (C::*)(First, Rest...) const> : parameters<First, Rest...> {};
template <class R, class C, class First, class... Rest>
struct parameter_of<R (C::*)(First, Rest...) const noexcept> : parameters<First, Rest...> {};
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
/// Chooses `F` where its parameters suit. So a call fails only where a body has an error, which the compiler
/// shows.
template <class F>
using called_function = std::conditional_t<late_function<F>, or_anything<F>, anything>;

template <class F, class V>
struct wrong_call : std::type_identity<mistakes::wrong_argument> {};
template <class F, class V>
  requires(!std::is_member_pointer_v<F>) && requires { typename parameter_of<F>::type; }
struct wrong_call<F, V> {
  using more = typename parameter_of<F>::more;
  using type = std::conditional_t<
      std::is_same_v<more, light_tuple<>> || std::is_same_v<more, light_tuple<rng&>>,
      mistakes::wrong_type<std::remove_cvref_t<argument_of<F, V>>, typename parameter_of<F>::type>,
      mistakes::several_parameters>;
};

/// What a function returns for an argument, or why it cannot be called with it: `Wrong::type`, unless it can
/// if it is not const.
template <class F, class Argument, class Wrong>
struct call_check {
  using result = void;
  using wrong = std::conditional_t<std::invocable<F&, Argument> || std::invocable<F&, Argument, rng&>,
                                   mistakes::mutable_function, typename Wrong::type>;
};
template <class F, class Argument, class Wrong>
  requires std::invocable<const F&, Argument>
struct call_check<F, Argument, Wrong> {
  using result = std::invoke_result_t<const F&, Argument>;
  using wrong = mistakes::none;
};
template <class F, class Argument, class Wrong>
  requires(!std::invocable<const F&, Argument>) && std::invocable<const F&, Argument, rng&>
struct call_check<F, Argument, Wrong> {
  using result = std::invoke_result_t<const F&, Argument, rng&>;
  using wrong = mistakes::none;
};

template <class F, class V>
struct function_check : call_check<F, argument_of<F, V>, wrong_call<F, V>> {};

/// What a function with memory says is wrong: `wrong_argument`, a mistake, or `wrong_argument_for<V>`.
template <class F, class V>
struct told_mistake : std::type_identity<mistakes::wrong_argument> {};
template <class F, class V>
  requires requires { typename F::wrong_argument; }
struct told_mistake<F, V> : std::type_identity<typename F::wrong_argument> {};
template <class F, class V>
  requires(!alike_parts<V>) && requires { typename F::template wrong_argument_for<V>; }
struct told_mistake<F, V> : std::type_identity<typename F::template wrong_argument_for<V>> {};
template <accepts_call F, class V>
struct function_check<F, V> {
  using result = void;
  using wrong = typename told_mistake<F, V>::type;
};
template <accepts_call F, class V>
  requires std::invocable<const F&, V&&, const call<function_scratch<F>>&>
struct function_check<F, V> {
  using result = std::invoke_result_t<const F&, V&&, const call<function_scratch<F>>&>;
  using wrong = mistakes::none;
};

template <class F, class V>
concept takes_each =
    accepts_call<F> && alike_parts<V> && !std::invocable<const F&, V&&, const call<function_scratch<F>>&> &&
    std::invocable<const F&, each_of<V>, const call<function_scratch<F>>&>;
template <class F, alike_parts V>
  requires requires { typename F::template wrong_argument_for<each_of<V>>; }
struct told_mistake<F, V> : told_mistake<F, each_of<V>> {};
template <accepts_call F, class V>
  requires takes_each<F, V>
struct function_check<F, V> {
  using result = decltype(std::declval<V>().with(std::declval<const F&>(),
                                                 std::declval<const call<function_scratch<F>>&>()));
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
  if constexpr (accepts_call<F>) {
    const call<function_scratch<F>> own{c.at, c.piece, c.seed, c.stream, c.scratch};
    if constexpr (takes_each<F, V>)
      return value.with(f, own);
    else
      return f(std::forward<V>(value), own);
  } else {
    const auto with = [&](auto&... random) -> decltype(auto) {
      if constexpr (std::is_member_pointer_v<F>)
        return call_member(f, penstock::finish(std::forward<V>(value)), random...);
      else if constexpr (takes_unfinished<F>)
        return f(std::forward<V>(value), random...);
      else
        return f(penstock::finish(std::forward<V>(value)), random...);
    };
    if constexpr (random_function<F, V>) {
      rng random = c.random();
      return with(random);
    } else {
      return with();
    }
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1
