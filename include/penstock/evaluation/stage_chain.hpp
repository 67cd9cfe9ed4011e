// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cached_form.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/evaluation/detail/worker_root.hpp>
#include <penstock/evaluation/next_samples.hpp>
#include <penstock/evaluation/reader_calls.hpp>

#include <algorithm>
#include <concepts>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

/// The single operation: `evaluate(position, worker&, sink)`. The value stages of a plan are nested into one
/// object whose evaluate inlines into one function; the matching worker type holds a scratch for each stage.
namespace penstock::inline v0_1 {

namespace detail {

/// The fetched bytes of a worker whose reader takes none.
struct nothing_fetched {};
template <class Reader>
using fetched_for =
    std::conditional_t<reader_traits_of<Reader>.takes_fetched, fetched_sample, nothing_fetched>;

}  // namespace detail

/// A stage that makes values of many samples at once, where a source shows such.
template <class Stage>
concept reads_contiguous = requires { requires bool(Stage::reads_contiguous); };

/// The innermost node over an indexed source: asks its reader.
template <class Reader>
struct source_node {
  static constexpr std::size_t ahead = 4;  ///< samples whose memory is prefetched before their turn

  struct worker {
    detail::worker_root root;
    [[no_unique_address]] detail::fetched_for<Reader> fetched;
    typename Reader::worker own;
  };
  static constexpr std::uint32_t depth = 0;
  static constexpr bool has_pieces = false;
  static constexpr bool has_runs = reader_traits_of<Reader>.shows_contiguous;

  const Reader* reader = nullptr;

  /// The samples that come next, at most `next_samples::maximum`.
  void look_ahead([[maybe_unused]] std::span<const position> next, [[maybe_unused]] worker& w) const {
    if constexpr (looks_ahead<Reader>) {
      reader->look_ahead(next, w.own);
      // One line of each: the processor looks up the pages of several at once, and only one after another if
      // the lines of a sample stand between them.
      for (std::size_t i = 0; i < next.size(); ++i) reader->prefetch_ahead(i, w.own, 1);
    }
    for (std::size_t i = 0; i < std::min(ahead, next.size()); ++i) prefetch(next, i, w);
  }
  /// Number i of them is evaluated next.
  // Not an ordinary function: at -O2 a call that only prefetches counts as having no effect and is removed.
  [[gnu::always_inline]] void turn_of(std::span<const position> next, std::size_t i,
                                      const worker& w) const noexcept {
    if (i + ahead < next.size()) prefetch(next, i + ahead, w);
  }
  /// A loop that looks at no sample ahead has no branch for it, and vectorises.
  static void turn_of(std::span<const position, 0>, std::size_t, const worker&) noexcept {}
  /// The sample evaluated next is in this row of the run, for which its bytes may have been fetched.
  void stand_at([[maybe_unused]] std::uint64_t row, [[maybe_unused]] worker& w) const noexcept {
    if constexpr (reader_traits_of<Reader>.takes_fetched) w.fetched.stand_at(row);
  }
  /// Goes on as if the next sample had been evaluated: what was fetched for it is released.
  void pass_over([[maybe_unused]] worker& w) const {
    if constexpr (reader_traits_of<Reader>.takes_fetched) const fetched_sample::scope held(w.fetched);
  }

  /// Of n samples of the source, shows as many as lie one behind the other in memory, by the first of them:
  /// `sink(first, count)` says whether it took them. Returns how many were taken, perhaps none.
  template <class Timing, class Sink>
    requires has_runs
  [[nodiscard]] std::uint64_t evaluate_run(position first, std::uint64_t n, worker& w, Sink&& sink,
                                           Timing timing) const {
    std::uint64_t landing = 0;
    const std::uint64_t begin = Timing::now();
    const std::uint64_t taken =
        reader->evaluate_run(first, n, w.own, [&](const auto& sample, std::uint64_t count) {
          const std::uint64_t shown = Timing::now();
          const bool took = sink(sample, count);
          landing = Timing::now() - shown;
          return took;
        });
    if constexpr (timing) {
      if (taken != 0) w.root.cost.nanoseconds += Timing::now() - begin - landing;
      w.root.cost.timed += taken;
    }
    return taken;
  }

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    if constexpr (timing) {
      detail::worker_root& root = w.root;
      root.landing = {};
      const std::uint64_t begin = Timing::now();
      ask(p.source, w, [&]<class V>(V&& value) {
        root.cost.nanoseconds += Timing::now() - begin;
        ++root.cost.timed;
        root.landing.hand_on(timing, sink, std::forward<V>(value));
        root.cost.nanoseconds += root.landing.template share_of_source<std::remove_cvref_t<V>>();
      });
    } else {
      ask(p.source, w, std::forward<Sink>(sink));
    }
  }

 private:
  /// Evaluates the sample at the current turn of `fetched`; the bytes fetched for it stay valid meanwhile.
  template <class Sink>
  void ask(position source, worker& w, Sink&& sink) const {
    if constexpr (reader_traits_of<Reader>.takes_fetched) {
      w.own.fetched = &w.fetched;
      const fetched_sample::scope held(w.fetched);
      reader->evaluate(source, w.own, std::forward<Sink>(sink));
    } else if constexpr (reader_traits_of<Reader>.calls_functions) {
      detail::failure_mark mark{w.root, 0};
      reader->evaluate(source, w.own, [&]<class V>(V&& value) {
        mark.armed = false;
        sink(std::forward<V>(value));
      });
      mark.armed = false;
    } else {
      reader->evaluate(source, w.own, std::forward<Sink>(sink));
    }
  }
  [[gnu::always_inline]] void prefetch([[maybe_unused]] std::span<const position> next, std::size_t i,
                                       [[maybe_unused]] const worker& w) const noexcept {
    if constexpr (looks_ahead<Reader>)
      reader->prefetch_ahead(i, w.own, ~std::uint64_t{0});
    else if constexpr (requires { reader->prefetch(next[i]); })
      reader->prefetch(next[i]);
  }
};

/// The innermost node over a source that can only be read forward: the samples have already been read, and a
/// position in the source is a number among them.
template <class Item>
struct item_node {
  struct worker {
    detail::worker_root root;
    const Item* items = nullptr;
  };
  static constexpr std::uint32_t depth = 0;
  static constexpr bool has_pieces = false, has_runs = false;

  static void look_ahead(std::span<const position>, worker&) noexcept {}
  static void turn_of(std::span<const position>, std::size_t, const worker&) noexcept {}
  static void stand_at(std::uint64_t, worker&) noexcept {}

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing) const {
    if constexpr (Timing::value) w.root.landing = {};
    sink(w.items[p.source.index]);
  }
};

/// A value stage on top of the node before it.
template <class Up, class Stage>
struct stage_node {
  struct worker {
    typename Up::worker up;
    [[no_unique_address]] detail::stage_scratch<Stage> own;
    [[no_unique_address]] stage_cost cost;

    /// So that this is no aggregate: Clang 16 initialises one whose members have the attribute through a
    /// temporary, and may build a member at no address.
    worker() = default;
  };
  static constexpr std::uint32_t depth = Up::depth + 1;
  static constexpr bool has_pieces = Up::has_pieces || part_of_kind<Stage, flat_map_tag>;
  static constexpr bool has_runs = Up::depth == 0 && Up::has_runs && reads_contiguous<Stage>;

  [[no_unique_address]] Up up;
  [[no_unique_address]] Stage stage;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;

  /// Evaluates as many of n samples of the source at once as lie one behind the other: `sink` gets a record
  /// of value runs and their length, and says whether it took them. Returns how many were taken, perhaps
  /// none.
  template <class Timing, class Sink>
    requires has_runs
  [[nodiscard]] std::uint64_t evaluate_run(position first, std::uint64_t n, worker& w, Sink&& sink,
                                           Timing timing) const {
    return up.evaluate_run(
        first, n, w.up,
        [&](const auto& sample, std::uint64_t count) {
          const std::uint64_t begin = Timing::now();
          const bool took = stage.apply_run(sample, [&](const auto& values) { return sink(values, count); });
          if constexpr (timing) {
            if (took) w.cost.nanoseconds += Timing::now() - begin, w.cost.timed += count;
          }
          return took;
        },
        timing);
  }
  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    up.evaluate(
        p, w.up, [&]<class V>(V&& value) { pass(p.at, w, sink, std::forward<V>(value), timing); }, timing);
  }

 private:
  template <class Sink, class V, class Timing>
  void pass(position p, worker& w, Sink& sink, V&& value, Timing timing) const {
    auto& root = detail::root_of(w);
    const detail::call_for<Stage> call{p, Up::has_pieces ? root.piece : 0u, seed, stream, w.own};
    if constexpr (part_of_kind<Stage, flat_map_tag>) {
      const piece_scope scope{root.piece, root.piece};
      detail::failure_mark mark{root, depth};
      std::uint32_t piece = scope.before == 0 ? 0 : static_cast<std::uint32_t>(mix64(scope.before));
      stage.expand(std::forward<V>(value), call, [&]<class W>(W&& row) {
        root.piece = piece++;
        mark.armed = false;
        hand_on<V>(w, root.landing, timing, sink, std::forward<W>(row));
        mark.armed = true;
      });
      mark.armed = false;
      if constexpr (Timing::value) ++w.cost.timed;
    } else {
      const std::uint64_t begin = Timing::now();
      detail::failure_mark mark{root, depth};
      if constexpr (part_of_kind<Stage, filter_tag>) {
        const bool kept = stage.keep(value, call);
        mark.armed = false;
        detail::count_call(w.cost, begin, timing);
        if (kept) hand_on<V>(w, root.landing, timing, sink, std::forward<V>(value));
      } else {
        auto&& result = stage.apply(std::forward<V>(value), call);
        mark.armed = false;
        detail::count_call(w.cost, begin, timing);
        hand_on<V>(w, root.landing, timing, sink, std::forward<decltype(result)>(result));
      }
    }
    if constexpr (Timing::value) root.landing.passed();
  }
  /// Restores the piece number, even if a later stage throws: the worker lives on.
  struct piece_scope {
    std::uint32_t& piece;
    std::uint32_t before;
    ~piece_scope() { piece = before; }
  };
  /// `Given`: the stage's input.
  template <class Given, class Timing, class Sink, class W>
  static void hand_on(worker& w, detail::landing_time& landing, Timing timing, Sink& sink, W&& value) {
    if constexpr (Timing::value) {
      landing.hand_on(timing, sink, std::forward<W>(value));
      w.cost.nanoseconds +=
          landing.template share_of_stage<std::remove_cvref_t<Given>, std::remove_cvref_t<W>>();
    } else {
      sink(std::forward<W>(value));
    }
  }
};

namespace detail {

/// While it lives, a worker evaluates samples that are not of its turn: nothing was fetched for them.
template <class Worker>
class out_of_turn {
 public:
  explicit out_of_turn(Worker& w) noexcept : worker_(w) {
    if constexpr (fetches) store_ = w.fetched.use(nullptr);
  }
  out_of_turn(const out_of_turn&) = delete;
  out_of_turn& operator=(const out_of_turn&) = delete;
  ~out_of_turn() {
    if constexpr (fetches) worker_.fetched.use(store_);
  }

 private:
  static constexpr bool fetches = requires(Worker& w) { w.fetched.use(nullptr); };
  Worker& worker_;
  range_store* store_ = nullptr;
};

/// Calls f(number, cost) for the source and each value stage, innermost first; returns the number of the
/// outermost.
template <class W, class F>
std::size_t for_each_cost(W& w, F&& f) {
  if constexpr (innermost_worker<W>) {
    f(std::size_t{0}, w.root.cost);
    return 0;
  } else if constexpr (requires { typename W::in_between; }) {  // no stage of the plan
    return for_each_cost(w.up, f);
  } else {
    const std::size_t number = for_each_cost(w.up, f) + 1;
    f(number, w.cost);
    return number;
  }
}

template <class Element, class Node>
auto nest(Node node, std::uint64_t, std::uint64_t) {
  return node;
}

/// Nests the value stages among `stages` around `node`. A random stage's stream is its number among the
/// random stages, or its own key.
template <class Element, class Node, class Stage, class... Rest>
auto nest(Node node, std::uint64_t seed, std::uint64_t number, const Stage& stage, const Rest&... rest) {
  using next_element = typename output_of<Stage, Element>::type;
  if constexpr (part_of_kind<Stage, sample_cache_tag>) {
    return nest<next_element>(stage.template around<std::remove_cvref_t<Element>>(std::move(node)), seed,
                              number, rest...);
  } else if constexpr (value_stage<Stage>) {
    constexpr bool random = stage_uses_random<Stage, Element>;
    std::uint64_t stream = number;
    if constexpr (addressed_stage<Stage>) {
      if (stage.stream_address() != 0) stream = stage.stream_address();
    }
    return nest<next_element>(stage_node<Node, Stage>{std::move(node), stage, seed, stream}, seed,
                              number + (random ? 1 : 0), rest...);
  } else {
    return nest<next_element>(std::move(node), seed, number, rest...);
  }
}

template <class S>
concept warning_scratch = requires(S& scratch) {
  { (scratch.warnings) } -> std::same_as<std::uint64_t&>;
};

/// The warnings of a scratch, and of all that it consists of: damage in a sample that a stage made do with.
/// A scratch that counts them has a member `std::uint64_t warnings`, and `warns`; others cost nothing.
template <class S>
struct warnings_in {
  static constexpr bool warns = warning_scratch<S>;
  static std::uint64_t count(const S& scratch) noexcept {
    if constexpr (warns)
      return scratch.warnings;
    else
      return 0;
  }
};
template <class... Ss>
struct warnings_in<light_tuple<Ss...>> {
  static constexpr bool warns = (warnings_in<Ss>::warns || ...);
  static std::uint64_t count(const light_tuple<Ss...>& all) noexcept {
    return all.apply(
        [](const Ss&... one) noexcept { return (std::uint64_t{0} + ... + warnings_in<Ss>::count(one)); });
  }
};
template <class... Ss>
struct warnings_in<std::tuple<Ss...>> {
  static constexpr bool warns = (warnings_in<Ss>::warns || ...);
  static std::uint64_t count(const std::tuple<Ss...>& all) noexcept {
    return std::apply(
        [](const Ss&... one) noexcept { return (std::uint64_t{0} + ... + warnings_in<Ss>::count(one)); },
        all);
  }
};

}  // namespace detail

/// Whether the stages of a worker can warn.
template <class Worker>
[[nodiscard]] constexpr bool can_warn() noexcept {
  if constexpr (detail::innermost_worker<Worker>)
    return false;
  else
    return detail::warnings_in<decltype(Worker::own)>::warns || can_warn<decltype(Worker::up)>();
}

/// How often the stages of a worker have warned so far.
template <class Worker>
[[nodiscard]] std::uint64_t warnings_of([[maybe_unused]] const Worker& w) noexcept {
  if constexpr (!can_warn<Worker>())
    return 0;
  else
    return detail::warnings_in<decltype(Worker::own)>::count(w.own) + warnings_of(w.up);
}

/// Whether a node, or one below it, keeps samples.
template <class Node>
inline constexpr bool keeps_samples = [] {
  if constexpr (requires { requires bool(Node::keeps_samples); })
    return true;
  else if constexpr (requires(const Node& node) { node.up; })
    return keeps_samples<std::remove_cvref_t<decltype(std::declval<const Node&>().up)>>;
  else
    return false;
}();

/// Whether a sample of the source is kept by a chain, so that nothing of it is read again.
template <class Node>
[[nodiscard]] bool is_kept_in([[maybe_unused]] const Node& chain, [[maybe_unused]] position source) noexcept {
  if constexpr (requires { requires bool(Node::keeps_samples); })
    return chain.is_kept(source) || is_kept_in(chain.up, source);
  else if constexpr (keeps_samples<Node>)
    return is_kept_in(chain.up, source);
  else
    return false;
}

/// What a chain keeps, in all its stages.
template <class Node>
[[nodiscard]] kept_counters kept_in([[maybe_unused]] const Node& chain) {
  kept_counters all;
  if constexpr (requires { requires bool(Node::keeps_samples); }) all = chain.counters();
  if constexpr (requires { chain.up; }) all += kept_in(chain.up);
  return all;
}

namespace detail {

/// A stage that keeps samples at a place that it chooses: `with_places(plan)` returns the plan's stages, and
/// between them those that keep.
template <class Stage>
concept place_choosing_stage = requires { requires bool(Stage::chooses_place); };

template <class... Stages>
consteval std::size_t first_chooser(const light_tuple<Stages...>*) {
  std::size_t found = sizeof...(Stages), i = 0;
  ((place_choosing_stage<Stages> && found == sizeof...(Stages) ? (found = i, ++i) : ++i), ...);
  return found;
}

}  // namespace detail

/// The chain of a plan's value stages on top of an innermost node.
template <class Plan, class Node>
auto make_chain(const Plan& p, Node node, std::uint64_t seed) {
  using stages_type = typename Plan::stages_type;
  constexpr std::size_t chooser = detail::first_chooser(static_cast<const stages_type*>(nullptr));
  const auto nest = [&](const auto&... stages) {
    return detail::nest<typename Plan::source_type::element>(std::move(node), seed, std::uint64_t{1},
                                                             stages...);
  };
  if constexpr (chooser != stages_type::size)
    return detail::at<chooser>(p.stages()).with_places(p).apply(nest);
  else
    return p.stages().apply(nest);
}

}  // namespace penstock::inline v0_1
