// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/pack.hpp>
#include <penstock/core/plan.hpp>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

/// `operator|` and its sentences.
namespace penstock::inline v0_1 {

/// What a wrong expression yields after its one error: it swallows the rest of the statement and of the loops
/// over it.
struct ill_formed {
  using penstock_part = poison_tag;
  /// In the place of a batch; and, in a loop without batches, of a number.
  struct batch {
    [[nodiscard]] std::size_t size() const { return 0; }
    [[nodiscard]] std::size_t valid_size() const { return 0; }
    [[nodiscard]] int* begin() const { return nullptr; }
    [[nodiscard]] int* end() const { return nullptr; }
    [[nodiscard]] std::span<int> values() const { return {}; }
    operator int() const { return 0; }  // NOLINT: implicit, so that a sum over samples compiles
  };
  struct epoch_range {
    [[nodiscard]] ill_formed* begin() const { return nullptr; }
    [[nodiscard]] ill_formed* end() const { return nullptr; }
  };
  template <guarantee>
  static constexpr bool keeps = true;
  template <class... Ts>
  [[nodiscard]] ill_formed open(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] epoch_range epochs(Ts&&...) const {
    return {};
  }
  template <class... Ts>
  [[nodiscard]] ill_formed epoch(Ts&&...) const {
    return {};
  }
  [[nodiscard]] batch* next() const { return nullptr; }
  [[nodiscard]] batch* begin() const { return nullptr; }
  [[nodiscard]] batch* end() const { return nullptr; }
};

template <fixed_string Name>
[[nodiscard]] std::span<int> get(const ill_formed::batch&) {
  return {};
}
template <std::size_t I>
[[nodiscard]] std::span<int> get(const ill_formed::batch&) {
  return {};
}

namespace detail {

template <class Context, class Stage>
consteval mistake diagnose_stage() {
  constexpr chain_facts f = Context::facts;
  if constexpr (f.copied && part_of_kind<Stage, batch_tag>) {
    return mistake::batch_after_copy;
  } else if constexpr (f.copied && (value_stage<Stage> || part_of_kind<Stage, device_tag> ||
                                    part_of_kind<Stage, cursor_tag> || part_of_kind<Stage, shard_tag>)) {
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
  } else if constexpr (f.bad_samples && part_of_kind<Stage, bad_samples_tag>) {
    return mistake::two_bad_samples;
  } else if constexpr (!f.batched && part_of_kind<Stage, steps_tag>) {
    return mistake::steps_without_batch;
  } else if constexpr (part_of_kind<Stage, order_tag> && f.forward && !requires { Stage::works_forward; }) {
    return mistake::order_on_forward;
  } else if constexpr (part_of_kind<Stage, order_tag> && (f.decided || (f.forward && f.batched)) &&
                       !requires { Stage::counts_only; }) {
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
    if constexpr (requires(const Stage& s, in&& v, const call_for<Stage>& c) {
                    s.apply(std::forward<in>(v), c);
                  })
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

/// The first mistake among stages that follow each other, and the element that reaches the stage that makes
/// it.
template <class Context, class... Stages>
struct diagnose_all {
  static constexpr mistake value = mistake::none;
  using reached = void;
};
template <mistake Wrong, class Context, class Stage, class... Rest>
struct diagnose_from {
  static constexpr mistake value = Wrong;
  using reached = typename Context::element;
};
template <class Context, class Stage, class... Rest>
struct diagnose_from<mistake::none, Context, Stage, Rest...>
    : diagnose_all<typename fold_context<Context, Stage>::type, Rest...> {};
template <class Context, class Stage, class... Rest>
struct diagnose_all<Context, Stage, Rest...>
    : diagnose_from<diagnose_stage<Context, Stage>(), Context, Stage, Rest...> {};

template <class T>
struct parts_of {
  using type = pack<T>;
};
template <class... Stages>
struct parts_of<segment<Stages...>> {
  using type = pack<Stages...>;
};

template <class T>
struct plan_context {
  using type = context_of<T>;
};
template <class Source, class... Stages>
struct plan_context<plan<Source, Stages...>> {
  using type = typename plan<Source, Stages...>::context;
};

template <class L, class Tuple>
struct diagnose_tuple;
template <class L, class... Stages>
struct diagnose_tuple<L, pack<Stages...>> : diagnose_all<typename plan_context<L>::type, Stages...> {};

template <class T>
concept begun = part_of_kind<T, plan_tag> || part_of_kind<T, source_tag>;

template <class L, class R>
consteval mistake diagnose() {
  if constexpr (!part<L>)
    return mistake::not_a_source;
  else if constexpr (!part<R>)
    return mistake::not_a_part;
  else if constexpr (begun<R>)
    return begun<L> ? mistake::two_sources : mistake::no_source;
  else if constexpr (begun<L>)
    return diagnose_tuple<L, typename parts_of<R>::type>::value;
  else
    return mistake::none;
}

/// Whether the sentence of a mistake speaks of the element that reaches the stage.
consteval bool is_about_element(mistake wrong) {
  constexpr mistake all[] = {mistake::no_such_field,
                             mistake::wrong_argument,
                             mistake::not_expandable,
                             mistake::fields_need_names,
                             mistake::codec_wants_bytes,
                             mistake::decode_which_field,
                             mistake::discovered_without_collate,
                             mistake::open_sample_in_batch,
                             mistake::not_batchable};
  for (const mistake one : all)
    if (one == wrong) return true;
  return false;
}

template <mistake Wrong, class L, class R>
struct reached_at {
  using type = void;
};
template <mistake Wrong, class L, class R>
  requires(is_about_element(Wrong))
struct reached_at<Wrong, L, R> {
  using type = reached_by<typename diagnose_tuple<L, typename parts_of<R>::type>::reached>;
};

template <class T>
constexpr auto stages_tuple(T&& x) {
  if constexpr (part_of_kind<T, plan_tag> || part_of_kind<T, segment_tag>)
    return std::forward<T>(x).stages();
  else
    return make_pack(std::forward<T>(x));
}

template <class Source, class... Stages>
constexpr auto make_plan(Source source, pack<Stages...> stages) {
  return plan<Source, Stages...>(std::move(source), std::move(stages));
}
template <class... Stages>
constexpr auto make_segment(pack<Stages...> stages) {
  return segment<Stages...>(std::move(stages));
}

template <class T>
concept poisoned = part_of_kind<T, poison_tag>;

}  // namespace detail

/// Whether `left | right` makes a pipeline; asks quietly.
template <class Left, class Right>
concept can_connect =
    detail::diagnose<std::remove_cvref_t<Left>, std::remove_cvref_t<Right>>() == mistake::none;

/// Joins a source or plan with a stage, or two stages. A wrong pair fails with one sentence.
template <class Left, class Right>
  requires(part<Left> || part<Right>)
[[nodiscard]] constexpr auto operator|(Left&& left, Right&& right) {
  if constexpr (detail::poisoned<Left> || detail::poisoned<Right>) {
    return ill_formed{};
  } else {
    using left_type = std::remove_cvref_t<Left>;
    using right_type = std::remove_cvref_t<Right>;
    constexpr mistake wrong = detail::diagnose<left_type, right_type>();
    if constexpr (wrong != mistake::none) {
      explain<wrong, typename detail::reached_at<wrong, left_type, right_type>::type>();
      return ill_formed{};
    } else if constexpr (part_of_kind<Left, plan_tag>) {
      return detail::make_plan(left.source(), detail::join(std::forward<Left>(left).stages(),
                                                           detail::stages_tuple(std::forward<Right>(right))));
    } else if constexpr (part_of_kind<Left, source_tag>) {
      return detail::make_plan(std::remove_cvref_t<Left>(std::forward<Left>(left)),
                               detail::stages_tuple(std::forward<Right>(right)));
    } else {
      return detail::make_segment(detail::join(detail::stages_tuple(std::forward<Left>(left)),
                                               detail::stages_tuple(std::forward<Right>(right))));
    }
  }
}

// A plan is a range, so that `plan | std::views::take(3)` would be ambiguous: these know plans by name and
// are preferred.
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(const plan<Source, Stages...>&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}
template <class Source, class... Stages, class Right>
  requires(!part<Right>)
[[nodiscard]] constexpr ill_formed operator|(plan<Source, Stages...>&&, Right&&) {
  explain<std::is_void_v<Right> ? mistake::none : mistake::not_a_part>();
  return {};
}

template <class... Stages>
template <class... Options>
auto segment<Stages...>::open(Options&&...) const {
  explain<(sizeof...(Options) + 1 > 0) ? mistake::no_source : mistake::none>();
  return ill_formed{};
}

}  // namespace penstock::inline v0_1
