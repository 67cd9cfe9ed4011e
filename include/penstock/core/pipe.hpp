// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/plan.hpp>

#include <cstddef>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

/// `operator|` and its sentences.
namespace penstock::inline v0_1 {

/// What a wrong expression yields after its one error: it swallows the rest of the statement and of the loop over it.
struct ill_formed {
  using penstock_part = poison_tag;
  struct batch {
    [[nodiscard]] std::size_t size() const { return 0; }
    [[nodiscard]] int* begin() const { return nullptr; }
    [[nodiscard]] int* end() const { return nullptr; }
    [[nodiscard]] std::span<int> values() const { return {}; }
  };
  template <guarantee>
  static constexpr bool keeps = true;
  template <class... Ts>
  [[nodiscard]] ill_formed open(Ts&&...) const { return {}; }
  template <class... Ts>
  [[nodiscard]] ill_formed epochs(Ts&&...) const { return {}; }
  template <class... Ts>
  [[nodiscard]] ill_formed epoch(Ts&&...) const { return {}; }
  [[nodiscard]] batch* begin() const { return nullptr; }
  [[nodiscard]] batch* end() const { return nullptr; }
};

namespace detail {

template <class Context, class Stage>
consteval mistake diagnose_stage() {
  constexpr chain_facts f = Context::facts;
  if constexpr (f.copied && part_of_kind<Stage, batch_tag>) {
    return mistake::batch_after_copy;
  } else if constexpr (f.copied && (value_stage<Stage> || part_of_kind<Stage, device_tag> || part_of_kind<Stage, cursor_tag> ||
                                    part_of_kind<Stage, shard_tag>)) {
    return mistake::stage_after_copy;
  } else if constexpr (f.batched && part_of_kind<Stage, batch_tag>) {
    return mistake::two_batches;
  } else if constexpr (f.batched && value_stage<Stage>) {
    return mistake::value_after_batch;
  } else if constexpr (f.batched && part_of_kind<Stage, cursor_tag>) {
    return mistake::cursor_after_batch;
  } else if constexpr (f.sharded && part_of_kind<Stage, shard_tag>) {
    return mistake::two_shards;
  } else if constexpr (f.batched && part_of_kind<Stage, shard_tag>) {
    return mistake::shard_after_batch;
  } else if constexpr (!f.batched && part_of_kind<Stage, device_tag>) {
    return mistake::copy_without_batch;
  } else if constexpr (!f.batched && part_of_kind<Stage, steps_tag>) {
    return mistake::steps_without_batch;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.forward && !requires { Stage::works_forward; }) {
    return mistake::order_on_forward;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.decided && !requires { Stage::counts_only; }) {
    return mistake::order_after_decider;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.cursor && !f.batched && !f.forward) {
    return mistake::order_after_cursor;
  } else if constexpr (part_of_kind<Stage, cursor_tag> && f.cursor) {
    return mistake::order_after_cursor;
  } else if constexpr (part_of_kind<Stage, cursor_tag> && f.decided) {
    return mistake::cursor_after_decider;
  } else if constexpr (requires { Stage::template diagnose<Context>(); }) {
    return Stage::template diagnose<Context>();
  } else if constexpr (part_of_kind<Stage, pointwise_tag>) {
    using in = typename Context::element;
    if constexpr (requires(const Stage& s, in&& v, const call_for<Stage>& c) { s.apply(std::forward<in>(v), c); })
      return mistake::none;
    else
      return mistake::wrong_argument;
  } else if constexpr (part_of_kind<Stage, decider_tag>) {
    using in = std::remove_cvref_t<typename Context::element>;
    if constexpr (requires(const Stage& s, const in& v, const call_for<Stage>& c) { s.keep(v, c) ? 0 : 1; })
      return mistake::none;
    else
      return mistake::wrong_argument;
  } else {
    return mistake::none;
  }
}

template <class Context, class... Stages>
struct diagnose_all {
  static constexpr mistake value = mistake::none;
};
template <class Context, class Stage, class... Rest>
struct diagnose_all<Context, Stage, Rest...> {
  static constexpr mistake first = diagnose_stage<Context, Stage>();
  static consteval mistake find() {
    if constexpr (first != mistake::none)
      return first;
    else if constexpr (sizeof...(Rest) == 0)
      return mistake::none;
    else
      return diagnose_all<typename fold_context<Context, Stage>::type, Rest...>::value;
  }
  static constexpr mistake value = find();
};

template <class T>
struct parts_of {
  using type = std::tuple<T>;
};
template <class... Stages>
struct parts_of<segment<Stages...>> {
  using type = std::tuple<Stages...>;
};

template <class Context, class Tuple>
struct diagnose_tuple;
template <class Context, class... Stages>
struct diagnose_tuple<Context, std::tuple<Stages...>> : diagnose_all<Context, Stages...> {};

template <class T>
struct plan_context {
  using type = context_of<T>;
};
template <class Source, class... Stages>
struct plan_context<plan<Source, Stages...>> {
  using type = typename plan<Source, Stages...>::context;
};

template <class L, class R>
consteval mistake diagnose() {
  if constexpr (!part<L>)
    return mistake::not_a_source;
  else if constexpr (!part<R>)
    return mistake::not_a_part;
  else if constexpr (part_of_kind<R, source_tag> || part_of_kind<R, plan_tag>)
    return mistake::two_sources;
  else if constexpr (part_of_kind<L, plan_tag> || part_of_kind<L, source_tag>)
    return diagnose_tuple<typename plan_context<L>::type, typename parts_of<R>::type>::value;
  else
    return mistake::none;
}

template <class T>
constexpr auto stages_tuple(T&& x) {
  if constexpr (part_of_kind<T, plan_tag> || part_of_kind<T, segment_tag>)
    return std::forward<T>(x).stages();
  else
    return std::tuple<std::remove_cvref_t<T>>(std::forward<T>(x));
}

template <class Source, class... Stages>
constexpr auto make_plan(Source source, std::tuple<Stages...> stages) {
  return plan<Source, Stages...>(std::move(source), std::move(stages));
}
template <class... Stages>
constexpr auto make_segment(std::tuple<Stages...> stages) {
  return segment<Stages...>(std::move(stages));
}

template <class T>
concept poisoned = part_of_kind<T, poison_tag>;

}  // namespace detail

/// Whether `left | right` makes a pipeline; asks quietly.
template <class Left, class Right>
concept can_connect = detail::diagnose<std::remove_cvref_t<Left>, std::remove_cvref_t<Right>>() == mistake::none;

/// Joins a source or plan with a stage, or two stages. A wrong pair fails with one sentence.
template <class Left, class Right>
  requires(part<Left> || part<Right>)
[[nodiscard]] constexpr auto operator|(Left&& left, Right&& right) {
  if constexpr (detail::poisoned<Left> || detail::poisoned<Right>) {
    return ill_formed{};
  } else {
    constexpr mistake wrong = detail::diagnose<std::remove_cvref_t<Left>, std::remove_cvref_t<Right>>();
    if constexpr (wrong != mistake::none) {
      explain<wrong>();
      return ill_formed{};
    } else if constexpr (part_of_kind<Left, plan_tag>) {
      return detail::make_plan(left.source(), std::tuple_cat(std::forward<Left>(left).stages(),
                                                             detail::stages_tuple(std::forward<Right>(right))));
    } else if constexpr (part_of_kind<Left, source_tag>) {
      return detail::make_plan(std::remove_cvref_t<Left>(std::forward<Left>(left)),
                               detail::stages_tuple(std::forward<Right>(right)));
    } else {
      return detail::make_segment(std::tuple_cat(detail::stages_tuple(std::forward<Left>(left)),
                                                 detail::stages_tuple(std::forward<Right>(right))));
    }
  }
}

template <class... Stages>
template <class... Options>
auto segment<Stages...>::open(Options&&...) const {
  explain<(sizeof...(Options) + 1 > 0) ? mistake::no_source : mistake::none>();
  return ill_formed{};
}

}  // namespace penstock::inline v0_1
