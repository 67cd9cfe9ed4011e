// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/pack.hpp>
#include <penstock/core/part.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

/// The plan: what an expression made with `|` is, and what its type knows.
namespace penstock::inline v0_1 {

namespace detail {

template <class T>
struct stage_scratch {
  struct type {};
};
template <class T>
  requires requires { typename T::scratch; }
struct stage_scratch<T> {
  using type = typename T::scratch;
};

template <class Stage>
using call_for = call<typename stage_scratch<Stage>::type>;

/// The element type after a value stage.
template <class Stage, class In>
struct output_of {
  using type = In;
};
template <part_of_kind<pointwise_tag> Stage, class In>
struct output_of<Stage, In> {
  using type = decltype(std::declval<const Stage&>().apply(std::declval<In>(),
                                                           std::declval<const call_for<Stage>&>()));
};
template <part_of_kind<expander_tag> Stage, class In>
struct output_of<Stage, In> {
  using type = typename Stage::template output<In>;
};

template <class T>
consteval guarantee_set lost_by(place where) {
  if constexpr (requires { T::loses(where); })
    return T::loses(where);
  else
    return guarantee_set{};
}

template <class T>
consteval mistake blame_for() {
  if constexpr (requires { T::blame; })
    return T::blame;
  else
    return mistake::lost_by_a_stage;
}

/// What is known at a place in a chain.
struct chain_facts {
  bool forward = false, sharded = false, cursor = false, decided = false, batched = false, copied = false,
       steps = false;
  std::array<mistake, 5> lost{};  // who lost each guarantee; none: still kept

  [[nodiscard]] constexpr mistake lost_by_whom(guarantee g) const {
    for (std::size_t i = 0; i < 5; ++i)
      if (all_guarantees[i] == g) return lost[i];
    return mistake::none;
  }
  constexpr void lose(guarantee_set what, mistake who) {
    for (std::size_t i = 0; i < 5; ++i)
      if (what.has(all_guarantees[i]) && lost[i] == mistake::none) lost[i] = who;
  }
};

template <class Element, chain_facts Facts>
struct context {
  using element = Element;
  static constexpr chain_facts facts = Facts;
};

template <class Source>
consteval chain_facts source_facts() {
  chain_facts f;
  f.forward = !requires(const Source& s) { s.size(); };
  f.lose(lost_by<Source>({}), blame_for<Source>());
  if (f.forward) {
    auto lost =
        guarantee_set(guarantee::indexed, guarantee::resumable, guarantee::elastic, guarantee::lockstep);
    if constexpr (requires { requires Source::seekable; })
      lost = guarantee_set(guarantee::indexed, guarantee::elastic, guarantee::lockstep);
    f.lose(lost, mistake::lost_by_forward);
  }
  return f;
}

template <class Stage>
consteval chain_facts facts_after(chain_facts f) {
  f.lose(lost_by<Stage>({f.sharded, f.forward}), blame_for<Stage>());
  if (part_of_kind<Stage, shard_tag>) f.sharded = true;
  if (part_of_kind<Stage, cursor_tag>) f.cursor = true;
  if (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>) {
    guarantee_set lost(guarantee::indexed, guarantee::lockstep);
    if (f.sharded) lost = lost.with(guarantee_set(guarantee::elastic));
    f.lose(lost, mistake::lost_by_decider);
    f.decided = true;
  }
  if (part_of_kind<Stage, batch_tag>) f.batched = true;
  if (part_of_kind<Stage, device_tag>) f.copied = true;
  if (part_of_kind<Stage, steps_tag>) {
    f.steps = true;
    for (std::size_t i = 0; i < 5; ++i)
      if (all_guarantees[i] == guarantee::lockstep) f.lost[i] = mistake::none;
  }
  return f;
}

template <class Context, class... Stages>
struct fold_context {
  using type = Context;
};
template <class Context, class Stage, class... Rest>
struct fold_context<Context, Stage, Rest...> {
  using next =
      context<typename output_of<Stage, typename Context::element>::type, facts_after<Stage>(Context::facts)>;
  using type = typename fold_context<next, Rest...>::type;
};

template <class Source, class... Stages>
using context_of =
    typename fold_context<context<typename Source::element, source_facts<Source>()>, Stages...>::type;

}  // namespace detail

/// A plan: a source and its stages, in the order they were written. A value: cheap to copy, it owns no thread
/// and no open file.
///
/// `open(...)` gives a run (see run/run.hpp); `for (auto&& b : plan)` is one pass over epoch 0.
template <class Source, class... Stages>
class plan {
 public:
  using penstock_part = plan_tag;
  using source_type = Source;
  using stages_type = pack<Stages...>;
  using context = detail::context_of<Source, Stages...>;
  /// What an element is at the end of the chain, before it is collated.
  using element = typename context::element;

  constexpr explicit plan(Source source, pack<Stages...> stages = {})
      : source_(std::move(source)), stages_(std::move(stages)) {}

  [[nodiscard]] constexpr const Source& source() const noexcept { return source_; }
  [[nodiscard]] constexpr const stages_type& stages() const noexcept { return stages_; }

  /// Whether the chain still promises `g`.
  template <guarantee G>
  static constexpr bool keeps = context::facts.lost_by_whom(G) == mistake::none;

  /// Starts to work: opens files, starts threads. See run/run.hpp for what may be given.
  template <class... Options>
  [[nodiscard]] auto open(Options&&... options) const {
    return open_run(*this, std::forward<Options>(options)...);
  }

  [[nodiscard]] auto begin() const { return begin_pass(*this); }
  [[nodiscard]] auto end() const { return end_pass(*this); }

 private:
  Source source_;
  [[no_unique_address]] stages_type stages_;
};

/// Stages joined without a source: a piece to be put into several plans.
template <class... Stages>
class segment {
 public:
  using penstock_part = segment_tag;
  constexpr explicit segment(pack<Stages...> stages) : stages_(std::move(stages)) {}
  [[nodiscard]] constexpr const pack<Stages...>& stages() const noexcept { return stages_; }

  template <class... Options>
  [[nodiscard]] auto open(Options&&...) const;

 private:
  [[no_unique_address]] pack<Stages...> stages_;
};

/// A plan that still promises each guarantee: `static_assert(elastic<decltype(loader)>)`.
template <class P>
concept indexed = std::remove_cvref_t<P>::template keeps<guarantee::indexed>;
/// Whether a plan gives the same sequence for the same seed.
template <class P>
concept deterministic = std::remove_cvref_t<P>::template keeps<guarantee::deterministic>;
/// Whether a small state restores the exact sequence of a plan.
template <class P>
concept resumable = std::remove_cvref_t<P>::template keeps<guarantee::resumable>;
/// Whether a plan's global steps have the same samples on any number of ranks.
template <class P>
concept elastic = std::remove_cvref_t<P>::template keeps<guarantee::elastic>;
/// Whether all ranks do the same number of batches of a plan, known before reading.
template <class P>
concept lockstep = std::remove_cvref_t<P>::template keeps<guarantee::lockstep>;

}  // namespace penstock::inline v0_1
