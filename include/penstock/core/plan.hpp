// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_count.hpp>
#include <penstock/core/call.hpp>
#include <penstock/core/detail/ill_formed.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/guarantee.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/part.hpp>

#include <concepts>
#include <iterator>
#include <type_traits>
#include <utility>

/// The plan: the result of an expression made with `|`, and what its type knows.
namespace penstock::inline v0_1 {

struct state;

namespace mistakes {

/// The mistake of `require` if the guarantee is lost: `|` finds the part that lost it and reports that part's
/// mistake.
template <guarantee G>
struct not_kept : about_expression {};

/// `open` and loops need a header that a plan alone does not.
struct run_not_included : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a plan is opened by <penstock/run/run.hpp>, which is not included before this; "
                  "write #include <penstock/run/run.hpp> at the top of the file, or <penstock/penstock.hpp>");
  }
};

/// Only `any_loader` can be one of several plans.
struct plan_of_another_type : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: plans with different stages have different types, so none can be assigned to another, "
        "nor chosen with ?:; make an any_loader<my_batch> of each, see "
        "<penstock/integration/any_loader.hpp>");
  }
};

}  // namespace mistakes

namespace detail {

/// Stands for a value after a mistake. Never called.
template <class T>
T no_value();

template <class Stage>
using stage_scratch = typename scratch_or<Stage, nothing_for<Stage>>::type;

template <class Stage>
using call_for = call<stage_scratch<Stage>>;

template <class Stage, class In>
struct output_of : std::type_identity<In> {};
template <part_of_kind<pointwise_tag> Stage, class In>
struct output_of<Stage, In> : std::type_identity<decltype(std::declval<const Stage&>().apply(
                                  std::declval<In>(), std::declval<const call_for<Stage>&>()))> {};
template <part_of_kind<flat_map_tag> Stage, class In>
struct output_of<Stage, In> : std::type_identity<typename Stage::template output<In>> {};

template <part_of_kind<sample_cache_tag> Stage, class In>
struct output_of<Stage, In> : std::type_identity<typename Stage::template output<In>> {};

template <class T>
concept losing_part = requires(place where) {
  { T::loses(where) } -> std::same_as<guarantee_set>;
};
template <class T>
consteval guarantee_set lost_by_itself(place where) {
  if constexpr (losing_part<T>)
    return T::loses(where);
  else
    return guarantee_set{};
}

/// What is known at one place in a chain.
struct chain_facts {
  bool forward = false, sharded = false, cursor = false, decided = false, batched = false, copied = false,
       steps = false, bad_samples = false, uneven = false, renumbers = false, expanded = false, drawn = false,
       varies = false, placed = false, computes = false, packed = false, packs_online = false;
  guarantee_set lost{};

  [[nodiscard]] constexpr bool keeps(guarantee g) const noexcept { return !lost.has(g); }
};

/// Behind `on_device`: the columns before it, which are still on the host, and the stage.
template <class Columns, class Stage>
struct columns_on_device {};

/// `Columns`: after `batch`, the batch stage, or the views that a `map_batch` returned; between `pack` and
/// `batch`, the pack stage.
template <class Element, chain_facts Facts, class Columns = void>
struct context {
  using element = Element;
  using columns = Columns;
  static constexpr chain_facts facts = Facts;
};

/// A batch stage behind a `pack` stage, which says how fields are collated.
template <class Batch, class Pack>
struct packed_batch {
  using penstock_part = batch_tag;
  template <class Name>
  using policy = typename Pack::template policy<Batch, Name>;
};
template <class Batch, class Pack>
struct batch_behind : std::type_identity<Batch> {};
template <class Batch, part_of_kind<pack_tag> Pack>
struct batch_behind<Batch, Pack> : std::type_identity<packed_batch<Batch, Pack>> {};

/// The type that describes the columns of batches after a stage.
template <class Stage, class Context>
struct columns_behind : std::type_identity<typename Context::columns> {};
template <part_of_kind<pack_tag> Stage, class Context>
struct columns_behind<Stage, Context> : std::type_identity<Stage> {};
template <part_of_kind<batch_tag> Stage, class Context>
struct columns_behind<Stage, Context> : batch_behind<Stage, typename Context::columns> {};
template <part_of_kind<batch_map_tag> Stage, class Context>
struct columns_behind<Stage, Context> : std::type_identity<typename Stage::template columns_after<Context>> {
};

template <part_of_kind<device_map_tag> Stage, class Context>
struct columns_behind<Stage, Context>
    : std::type_identity<columns_on_device<typename Context::columns, Stage>> {};

/// The guarantees that every source or stage of this kind loses.
template <class Part>
consteval guarantee_set lost_by_kind(place where) {
  if constexpr (part_of_kind<Part, source_tag>) {
    if constexpr (sized_part<Part>)
      return guarantee_set{};
    else if constexpr (seekable_part<Part>)
      return guarantee_set(guarantee::indexed, guarantee::elastic, guarantee::lockstep);
    else
      return guarantee_set(guarantee::indexed, guarantee::resumable, guarantee::elastic, guarantee::lockstep);
  } else if constexpr (part_of_kind<Part, filter_tag> || part_of_kind<Part, flat_map_tag>) {
    return where.after_shard ? guarantee_set(guarantee::indexed, guarantee::lockstep, guarantee::elastic)
                             : guarantee_set(guarantee::indexed, guarantee::lockstep);
  } else {
    return guarantee_set{};
  }
}

template <class Source>
consteval chain_facts source_facts() {
  chain_facts f;
  f.forward = !sized_part<Source>;
  f.renumbers = renumbering_part<Source>;
  f.varies = varying_part<Source>;
  f.lost = lost_by_itself<Source>({}).with(lost_by_kind<Source>({}));
  return f;
}

/// `Draws`: whether the stage draws random numbers for its element.
template <class Stage, bool Draws>
consteval chain_facts facts_after(chain_facts f) {
  const place where{f.sharded, f.forward};
  f.lost = f.lost.with(lost_by_itself<Stage>(where)).with(lost_by_kind<Stage>(where));
  if (part_of_kind<Stage, shard_tag>) f.sharded = true;
  if (part_of_kind<Stage, cursor_tag>) f.cursor = true;
  if (part_of_kind<Stage, filter_tag> || part_of_kind<Stage, flat_map_tag>) f.decided = true;
  if (part_of_kind<Stage, flat_map_tag>) f.expanded = true;
  if (part_of_kind<Stage, batch_tag>) f.batched = true;
  if (Draws) f.drawn = true;
  if (positional_part<Stage>) f.placed = true;
  if (part_of_kind<Stage, pack_tag>) f.packed = true;
  if (online_pack<Stage>) f.packs_online = f.decided = true;
  if (uneven_batch<Stage> || (f.packed && f.batched && !f.packs_online)) f.uneven = true;
  if (part_of_kind<Stage, device_tag>) f.copied = true;
  if (computing_part<Stage>) f.computes = true;
  if (part_of_kind<Stage, bad_samples_tag>) f.bad_samples = true;
  if (part_of_kind<Stage, steps_tag>) {
    f.steps = true;
    f.lost = f.lost.without(guarantee_set(guarantee::lockstep));
  }
  return f;
}

template <class Context, class... Stages>
struct fold_context : std::type_identity<Context> {};
template <class Context, class Stage, class... Rest>
struct fold_context<Context, Stage, Rest...> {
  using next =
      context<typename output_of<Stage, typename Context::element>::type,
              facts_after<Stage, stage_uses_random<Stage, typename Context::element>>(Context::facts),
              typename columns_behind<Stage, Context>::type>;
  using type = typename fold_context<next, Rest...>::type;
};

template <class Source, class... Stages>
using context_of =
    typename fold_context<context<typename Source::element, source_facts<Source>()>, Stages...>::type;

/// The mistake to report for a part that lost a guarantee: its own `blame`, or that of its kind.
template <guarantee G, class Part>
struct blame_of
    : std::type_identity<
          std::conditional_t<!lost_by_kind<Part>({.after_shard = true}).has(G), mistakes::lost_by_a_stage,
                             std::conditional_t<part_of_kind<Part, source_tag>, mistakes::lost_by_forward,
                                                mistakes::lost_by_filter>>> {};
template <class T>
concept blaming_part = requires { requires mistake<typename T::blame>; };
template <guarantee G, blaming_part Part>
struct blame_of<G, Part> : std::type_identity<typename Part::blame> {};

/// The part that lost a guarantee: the last one that received it and did not keep it. Computed only on
/// failure.
template <guarantee G, class Found, class Context, class... Stages>
struct loser_among {
  using part = Found;
};
template <guarantee G, class Found, class Context, class Stage, class... Rest>
struct loser_among<G, Found, Context, Stage, Rest...> {
  using next = typename fold_context<Context, Stage>::type;
  using found = std::conditional_t<Context::facts.keeps(G) && !next::facts.keeps(G), Stage, Found>;
  using part = typename loser_among<G, found, next, Rest...>::part;
};
template <guarantee G, class Source, class... Stages>
struct loser_of : loser_among<G, Source, context_of<Source>, Stages...> {
  using mistake = typename blame_of<G, typename loser_of::part>::type;
};

/// A stage that draws random numbers in its place, and so shifts the streams of the stages after it.
template <class Stage, class Context>
concept random_stage = stage_uses_random<Stage, typename Context::element> ||
                       requires { requires Stage::template draws_in<Context>; };

/// Whether the source or a stage makes epochs differ, by declaration or because it draws random numbers.
template <class Context, class... Parts>
struct varies : std::false_type {};
template <class Context, class Part, class... Rest>
struct varies<Context, Part, Rest...> {
  static constexpr bool value = [] {
    if constexpr (varying_part<Part> || random_stage<Part, Context>)
      return true;
    else if constexpr (part_of_kind<Part, source_tag>)
      return varies<Context, Rest...>::value;
    else
      return varies<typename fold_context<Context, Part>::type, Rest...>::value;
  }();
};

/// Whether run/run.hpp is included.
template <class Plan>
concept opened_by_run = requires(const Plan& p) { epoch_of(p, std::uint64_t{}); };

}  // namespace detail

/// A plan: a source and its stages, in the order they were written. A value type: cheap to copy, owns no
/// thread and no open file.
///
/// `open(...)` starts a run (see run/run.hpp); `for (auto&& b : plan.epoch(e))` is one pass over epoch e.
template <class Source, class... Stages>
class plan {
 public:
  using penstock_part = plan_tag;
  using source_type = Source;
  using stages_type = light_tuple<Stages...>;
  using context = detail::context_of<Source, Stages...>;
  /// The type of an element at the end of the chain, before it is collated.
  using element = typename context::element;

  constexpr explicit plan(Source source, light_tuple<Stages...> stages = {})
      : source_(std::move(source)), stages_(std::move(stages)) {}

  [[nodiscard]] constexpr const Source& source() const& noexcept { return source_; }
  [[nodiscard]] constexpr Source&& source() && noexcept { return std::move(source_); }
  [[nodiscard]] constexpr const stages_type& stages() const& noexcept { return stages_; }
  [[nodiscard]] constexpr stages_type&& stages() && noexcept { return std::move(stages_); }

  /// Whether the chain still promises `g`.
  template <guarantee G>
  static constexpr bool keeps = context::facts.keeps(G);

  /// Starts a run: opens files, starts threads. See run/run.hpp for the options.
  template <class... Options>
  [[nodiscard]] auto open(Options&&... options) const {
    if constexpr (detail::opened_by_run<plan>) {
      return open_run(*this, std::forward<Options>(options)...);
    } else {
      mistakes::run_not_included::explain(std::type_identity<plan>{});
      return ill_formed{};
    }
  }

  /// One pass over an epoch, in a run of its own: `for (auto&& b : loader.epoch(3))`.
  [[nodiscard]] auto epoch(any_count number) const {
    if constexpr (detail::opened_by_run<plan>) {
      return epoch_of(*this, number.of("epoch"));
    } else {
      mistakes::run_not_included::explain(std::type_identity<plan>{});
      return ill_formed{};
    }
  }

  /// Whether every epoch gives the same elements in the same order.
  static constexpr bool same_every_epoch =
      !detail::varies<detail::context_of<Source>, Source, Stages...>::value;

  /// Whether samples take far longer to make than their bytes say: see `lone_part`.
  static constexpr bool one_at_a_time = lone_part<Source> || (lone_part<Stages> || ...);

  /// Whether no stage does more with a sample than to choose parts of it.
  static constexpr bool only_chooses = ((!value_stage<Stages> || choosing_part<Stages>)&&...);

  /// One pass, if every epoch is identical; a mistake if they differ. The return type does not depend on the
  /// body, so that a program can ask whether a plan is a range.
  template <class Self = plan>
  [[nodiscard]] auto begin() const -> decltype(epoch_of(std::declval<const Self&>(), 0).begin()) {
    static_assert(
        Self::same_every_epoch,
        "penstock: the epochs of this plan differ, and a loop over it would give epoch 0 every time; write "
        "auto run = loader.open(); for (auto epoch : run.epochs(n)) for (auto&& b : epoch), or "
        "loader.epoch(e) for one pass");
    return epoch_of(*this, 0).begin();
  }
  template <class Self = plan>
    requires(!detail::opened_by_run<Self>)
  [[nodiscard]] std::counted_iterator<ill_formed::batch*> begin() const {
    mistakes::run_not_included::explain(std::type_identity<Self>{});
    return {};
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

  // What a run has and a plan has not.
  template <class Self = plan>
  [[nodiscard]] ill_formed::epoch_range epochs(any_count) const {
    static_assert(
        never<Self>,
        "penstock: epochs(n) is a run's, and a plan is not opened yet; write auto run = "
        "plan.open(); for (auto epoch : run.epochs(n)) for (auto&& b : epoch), or plan.epoch(e) for "
        "one pass");
    return {};
  }
  template <class Self = plan>
  [[nodiscard]] ill_formed::batch size() const {
    static_assert(
        never<Self>,
        "penstock: a plan has no size(); write plan.source().size() for the samples that are stored, "
        "or open it, auto run = plan.open();, and ask for run.steps_per_epoch(), its batches");
    return {};
  }
  // Plans of different stages are different types.
  template <class OtherSource, class... Others>
    requires(!std::same_as<plan<OtherSource, Others...>, plan>)
  plan& operator=(const plan<OtherSource, Others...>&) {
    mistakes::plan_of_another_type::explain(std::type_identity<plan<OtherSource, Others...>>{});
    return *this;
  }
  /// A plan of more stages converts to one of fewer, so that the compiler tries it in `condition ? a : b`.
  template <class OtherSource, class... Others>
    requires(sizeof...(Others) > sizeof...(Stages))
  plan(const plan<OtherSource, Others...>&)  // NOLINT(google-explicit-constructor)
      : source_(detail::no_value<Source>()), stages_(detail::no_value<stages_type>()) {
    mistakes::plan_of_another_type::explain(std::type_identity<plan<OtherSource, Others...>>{});
  }
  template <class State = penstock::state>
  [[nodiscard]] State state() const {
    static_assert(
        never<State>,
        "penstock: state() is a run's, and a plan stands nowhere; write auto run = plan.open(); and "
        "run.state() where the state is wanted");
    return {};
  }

 private:
  Source source_;
  [[no_unique_address]] stages_type stages_;
};

/// Stages joined without a source, for use in several plans.
template <class... Stages>
class segment {
 public:
  using penstock_part = segment_tag;
  constexpr explicit segment(light_tuple<Stages...> stages) : stages_(std::move(stages)) {}
  [[nodiscard]] constexpr const light_tuple<Stages...>& stages() const& noexcept { return stages_; }
  [[nodiscard]] constexpr light_tuple<Stages...>&& stages() && noexcept { return std::move(stages_); }

  template <class... Options>
  [[nodiscard]] auto open(Options&&...) const;

 private:
  [[no_unique_address]] light_tuple<Stages...> stages_;
};

/// A plan that still promises the guarantee: `static_assert(indexed<decltype(loader)>)`.
template <class P>
concept indexed = std::remove_cvref_t<P>::template keeps<guarantee::indexed>;
/// A plan that gives the same sequence for the same seed.
template <class P>
concept deterministic = std::remove_cvref_t<P>::template keeps<guarantee::deterministic>;
/// A plan whose exact sequence a small state restores.
template <class P>
concept resumable = std::remove_cvref_t<P>::template keeps<guarantee::resumable>;
/// A plan whose global steps contain the same samples on any number of ranks.
template <class P>
concept elastic = std::remove_cvref_t<P>::template keeps<guarantee::elastic>;
/// A plan with the same number of batches on all ranks, known before reading.
template <class P>
concept lockstep = std::remove_cvref_t<P>::template keeps<guarantee::lockstep>;

}  // namespace penstock::inline v0_1
