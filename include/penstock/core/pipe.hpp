// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/detail/ill_formed.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/opens_as_plan.hpp>
#include <penstock/core/plan.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

/// `operator|` and its error messages.
namespace penstock::inline v0_1 {

namespace detail {

/// A stage that finds its own mistakes: `template <class Context> static consteval auto diagnose()` returns
/// one, or `mistakes::none`. `Context::element` is the type of the element that reaches the stage,
/// `Context::facts` what is known of the chain before it.
template <class Stage, class Context>
concept diagnosing_stage = requires { Stage::template diagnose<Context>(); };

/// Finds the mistake of a stage in its place: checks its kind first, then asks the stage itself.
template <class Context, class Stage>
consteval auto diagnose_stage() {
  constexpr chain_facts f = Context::facts;
  constexpr bool order = part_of_kind<Stage, order_tag>;
  using in = typename Context::element;
  if constexpr (f.copied && (value_stage<Stage> || part_of_kind<Stage, device_tag> ||
                             part_of_kind<Stage, cursor_tag> || part_of_kind<Stage, shard_tag>)) {
    return mistakes::stage_after_copy{};
  } else if constexpr (f.batched && value_stage<Stage>) {
    return mistakes::value_after_batch{};
  } else if constexpr (f.packed && !f.batched &&
                       (value_stage<Stage> || order || part_of_kind<Stage, cursor_tag>)) {
    return mistakes::stage_after_pack{};
  } else if constexpr (order && f.forward && !forward_order<Stage>) {
    return mistakes::order_on_forward{};
  } else if constexpr (order && (f.decided || (f.forward && f.batched)) && !counting_order<Stage>) {
    return mistakes::order_after_filter{};
  } else if constexpr (order && f.cursor && !f.batched && !f.forward) {
    return mistakes::order_after_cursor{};
  } else if constexpr (order && f.batched && !forward_order<Stage> && !batch_order<Stage>) {
    if constexpr (requires { typename Stage::mistake_after_batch; })
      return typename Stage::mistake_after_batch{};
    else
      return mistakes::order_after_batch{};
  } else if constexpr (f.uneven && (order || part_of_kind<Stage, steps_tag>)) {
    return mistakes::order_after_uneven_steps{};
  } else if constexpr (diagnosing_stage<Stage, Context>) {
    return Stage::template diagnose<Context>();
  } else if constexpr (part_of_kind<Stage, pointwise_tag>) {
    if constexpr (requires(const Stage& s, in&& v, const call_for<Stage>& c) {
                    s.apply(std::forward<in>(v), c);
                  })
      return mistakes::none{};
    else
      return mistakes::wrong_argument{};
  } else if constexpr (part_of_kind<Stage, filter_tag>) {
    if constexpr (requires(const Stage& s, const std::remove_cvref_t<in>& v, const call_for<Stage>& c) {
                    s.keep(v, c) ? 0 : 1;
                  })
      return mistakes::none{};
    else
      return mistakes::wrong_argument{};
  } else {
    return mistakes::none{};
  }
}

/// The first mistake in a sequence of stages, and the element type that reaches the misused stage.
template <class Context, class... Stages>
struct diagnose_all {
  using type = mistakes::none;
  using reached = void;
};
template <class Wrong, class Context, class Stage, class... Rest>
struct diagnose_from {
  using type = Wrong;
  using reached = typename Context::element;
};
template <class Context, class Stage, class... Rest>
struct diagnose_from<mistakes::none, Context, Stage, Rest...>
    : diagnose_all<typename fold_context<Context, Stage>::type, Rest...> {};
template <class Context, class Stage, class... Rest>
struct diagnose_all<Context, Stage, Rest...>
    : diagnose_from<decltype(diagnose_stage<Context, Stage>()), Context, Stage, Rest...> {};

template <class T>
struct parts_of : std::type_identity<light_tuple<T>> {};
template <class... Stages>
struct parts_of<segment<Stages...>> : std::type_identity<light_tuple<Stages...>> {};

template <class T>
struct plan_context : std::type_identity<context_of<T>> {};
template <class Source, class... Stages>
struct plan_context<plan<Source, Stages...>> : std::type_identity<typename plan<Source, Stages...>::context> {
};

template <class L, class Tuple>
struct diagnose_tuple;
template <class L, class... Stages>
struct diagnose_tuple<L, light_tuple<Stages...>> : diagnose_all<typename plan_context<L>::type, Stages...> {};

/// A source written before sources had `connect`.
template <class T>
concept source_with_open =
    part_of_kind<T, source_tag> &&
    !std::derived_from<std::remove_cvref_t<T>, opens_as_plan<std::remove_cvref_t<T>>> &&
    requires(const T& s) { s.open(); };

template <class T>
concept plain_source = part_of_kind<T, source_tag>;
template <class T>
concept source_with_element = requires { typename T::element; };
template <class T>
concept source_with_reader = requires { typename T::reader; } &&
                             (
                                 requires { &T::connect; } || requires(const T& s) { s.connect(); }) &&
                             (!sized_part<T> || requires { typename T::reader::worker; });
template <class T>
concept source_with_names = requires(const T& s) {
  s.starts();
  s.describe();
  s.fingerprint();
  T::source_name;
};

template <class T>
concept begun = part_of_kind<T, plan_tag> || part_of_kind<T, source_tag>;

/// `Wrong`, or if that is none, what a stage finds that looks at all that is before it: `template <class
/// Before> static consteval auto diagnose_behind()`.
template <class Wrong, class L, class R>
consteval auto diagnose_behind() {
  if constexpr (is_right<Wrong> && requires { R::template diagnose_behind<L>(); })
    return R::template diagnose_behind<L>();
  else
    return Wrong{};
}

template <class L, class R>
consteval auto diagnose() {
  if constexpr (!part<L>)
    return mistakes::not_a_source{};
  else if constexpr (!part<R>)
    return mistakes::not_a_part{};
  else if constexpr (begun<L> && begun<R>)
    return mistakes::two_sources{};
  else if constexpr (begun<R>)
    return mistakes::no_source{};
  else if constexpr (source_with_open<L>)
    return mistakes::source_with_open{};
  else if constexpr (plain_source<L> && !source_with_element<L>)
    return mistakes::source_without_element{};
  else if constexpr (plain_source<L> && !source_with_reader<L>)
    return mistakes::source_without_reader{};
  else if constexpr (plain_source<L> && sized_part<L> && !source_with_names<L>)
    return mistakes::source_without_names{};
  else if constexpr (begun<L>)
    return diagnose_behind<typename diagnose_tuple<L, typename parts_of<R>::type>::type, L, R>();
  else
    return mistakes::none{};
}
/// The mistake in `L | R`, or `mistakes::none`.
template <class L, class R>
using mistake_of = decltype(diagnose<L, R>());

template <class L, class Stages>
struct all_parts;
template <class Source, class... Before, class... Stages>
struct all_parts<plan<Source, Before...>, light_tuple<Stages...>> {
  template <guarantee G>
  using loser = loser_of<G, Source, Before..., Stages...>;
};
template <part_of_kind<source_tag> Source, class... Stages>
struct all_parts<Source, light_tuple<Stages...>> {
  template <guarantee G>
  using loser = loser_of<G, Source, Stages...>;
};

/// What the compiler shows for a wrong pair: the sentence of the mistake, and next to it the type of the
/// element or part that the sentence is about.
template <class Wrong, class L, class R>
struct explanation {
  using mistake = Wrong;
  using shown = light_tuple<>;
};
template <class Wrong, class L, class R>
  requires std::same_as<typename Wrong::penstock_mistake, about_element_tag>
struct explanation<Wrong, L, R> {
  using mistake = Wrong;
  using shown = arrives_here<typename diagnose_tuple<L, typename parts_of<R>::type>::reached>;
};
template <guarantee G, class L, class R>
struct explanation<mistakes::not_kept<G>, L, R> {
  using loser = typename all_parts<L, typename parts_of<R>::type>::template loser<G>;
  using mistake = typename loser::mistake;
  using shown = lost_by<typename loser::part>;
};

template <class T>
constexpr auto stages_tuple(T&& x) {
  if constexpr (part_of_kind<T, plan_tag> || part_of_kind<T, segment_tag>)
    return std::forward<T>(x).stages();
  else
    return make_light_tuple(std::forward<T>(x));
}

template <class Source, class... Stages>
constexpr auto make_plan(Source source, light_tuple<Stages...> stages) {
  return plan<Source, Stages...>(std::move(source), std::move(stages));
}
template <class... Stages>
constexpr auto make_segment(light_tuple<Stages...> stages) {
  return segment<Stages...>(std::move(stages));
}

/// A source, or a plan of samples: behind `batch` a value stage is a mistake, whatever its function.
template <class L>
concept gives_samples =
    begun<L> &&
    (part_of_kind<L, plan_tag> ||
     source_with_element<std::remove_cvref_t<L>>)&&!plan_context<std::remove_cvref_t<L>>::type::facts.batched;

/// What arrives behind a source or a plan.
template <class L>
struct arriving_behind : std::type_identity<void> {};
template <gives_samples L>
struct arriving_behind<L> : std::type_identity<typename plan_context<std::remove_cvref_t<L>>::type::element> {
};
template <class L>
using arriving = typename arriving_behind<L>::type;

/// A stage with a function that says how it is called: a `penstock_function`, and `called_with<Element,
/// More...>`, which fails only where the function's body has an error, or where the compiler cannot choose
/// among its overloads.
template <class T>
concept calling_stage = requires { typename std::remove_cvref_t<T>::penstock_function; };

template <class T>
concept poisoned = part_of_kind<T, poison_tag>;

}  // namespace detail

/// Whether `left | right` makes a pipeline. Never causes a compile error.
template <class Left, class Right>
concept can_connect =
    detail::is_right<detail::mistake_of<std::remove_cvref_t<Left>, std::remove_cvref_t<Right>>>;

/// Joins a source or plan with a stage, or two stages. A wrong pair fails to compile with one sentence.
template <class Left, class Right>
  requires(part<Left> || part<Right>)
[[nodiscard]] constexpr auto operator|(Left&& left, Right&& right) {
  if constexpr (detail::poisoned<Left> || detail::poisoned<Right>) {
    return ill_formed{};
  } else if constexpr (detail::gives_samples<Left> && detail::calling_stage<Right> && !requires {
                         typename std::remove_cvref_t<Right>::template called_with<detail::arriving<Left>>;
                         typename std::remove_cvref_t<Right>::template called_with<detail::arriving<Left>,
                                                                                   rng&>;
                       }) {
    // Called here, before it is asked of anything else, an error in a function's body is shown with few
    // lines, and no sentence follows. What was not shown yet is shown by the same call, where it is no
    // question.
    using stage_type = std::remove_cvref_t<Right>;
    if constexpr (!requires { typename stage_type::template called_with<detail::arriving<Left>>; }) {
      using shown [[maybe_unused]] =
          typename stage_type::template must_be_called_with<detail::arriving<Left>>;
    }
    if constexpr (!requires { typename stage_type::template called_with<detail::arriving<Left>, rng&>; }) {
      using shown [[maybe_unused]] =
          typename stage_type::template must_be_called_with<detail::arriving<Left>, rng&>;
    }
    return ill_formed{};
  } else {
    using left_type = std::remove_cvref_t<Left>;
    using right_type = std::remove_cvref_t<Right>;
    using wrong = detail::mistake_of<left_type, right_type>;
    if constexpr (!detail::is_right<wrong>) {
      using say = detail::explanation<wrong, left_type, right_type>;
      say::mistake::explain(typename say::shown{});
      return ill_formed{};
    } else if constexpr (part_of_kind<Left, plan_tag>) {
      auto&& source = std::forward<Left>(left).source();
      return detail::make_plan(
          std::forward<decltype(source)>(source),
          detail::join(std::forward<Left>(left).stages(), detail::stages_tuple(std::forward<Right>(right))));
    } else if constexpr (part_of_kind<Left, source_tag>) {
      return detail::make_plan(std::remove_cvref_t<Left>(std::forward<Left>(left)),
                               detail::stages_tuple(std::forward<Right>(right)));
    } else {
      return detail::make_segment(detail::join(detail::stages_tuple(std::forward<Left>(left)),
                                               detail::stages_tuple(std::forward<Right>(right))));
    }
  }
}

// A plan is a range, which would make `plan | std::views::take(3)` ambiguous. These overloads know plans by
// name and are preferred.
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(const plan<Source, Stages...>&, Right&&) {
  mistakes::not_a_part::explain(std::type_identity<Right>{});
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&, Right&&) {
  mistakes::not_a_part::explain(std::type_identity<Right>{});
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&&, Right&&) {
  mistakes::not_a_part::explain(std::type_identity<Right>{});
  return {};
}

template <class... Stages>
template <class... Options>
auto segment<Stages...>::open(Options&&...) const {
  mistakes::no_source::explain(std::type_identity<light_tuple<Options...>>{});
  return ill_formed{};
}

}  // namespace penstock::inline v0_1
