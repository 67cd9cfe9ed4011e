// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/position.hpp>
#include <penstock/evaluation/detail/worker_root.hpp>
#include <penstock/evaluation/next_samples.hpp>
#include <penstock/evaluation/place_choice.hpp>
#include <penstock/evaluation/sample_cache_node.hpp>

#include <memory>
#include <type_traits>
#include <utility>

/// Nodes of a chain that keeps samples at one of several places, which is chosen while it runs.
namespace penstock::inline v0_1 {

namespace detail {

/// Whether what comes behind a value could make another one of it if it were kept: of an image that may be
/// decoded smaller than it is, and of a sound whose parts may differ from those of the whole.
template <class V>
[[nodiscard]] bool differs_when_kept([[maybe_unused]] const V& value) {
  if constexpr (any_record<V>) {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return (differs_when_kept(get<Is>(value)) || ...);
    }(std::make_index_sequence<V::size>{});
  } else if constexpr (requires { value.max_halvings(); }) {
    return value.max_halvings() != 0;
  } else if constexpr (requires { value.parts_differ(); }) {
    return value.parts_differ();
  } else {
    return false;
  }
}

/// Tells all workers of a chain which place it is for the samples that come.
template <class W>
void tell_places(W& w, place_turn turn) noexcept {
  if constexpr (requires { w.turn_here(turn); }) w.turn_here(turn);
  if constexpr (requires { w.up; }) tell_places(w.up, turn);
}

/// A place where samples may be kept, which is no stage of the plan: without a turn there the node is as if
/// it were not there. `Others`: what arrives of samples that an earlier place shows.
template <class Up, class Element, std::uint32_t Place, class... Others>
class chosen_cache_node : public sample_cache_node<Up, Element> {
  using base = sample_cache_node<Up, Element>;
  using typename base::kept_form;
  template <class V>
  static constexpr bool shown_before =
      !std::is_same_v<V, std::remove_cvref_t<Element>> && (std::is_same_v<V, Others> || ...);

 public:
  struct worker : base::worker {
    using in_between = void;
    enum class does : std::uint8_t { nothing, keeps, tries } now = does::nothing;

    void turn_here(place_turn turn) noexcept {
      now = turn.place != Place ? does::nothing : turn.tries ? does::tries : does::keeps;
    }
  };
  static constexpr std::uint32_t depth = Up::depth;

  chosen_cache_node(Up inner, std::uint64_t limit, shared<place_choice> choice)
      : base(std::move(inner), limit), choice_(std::move(choice)) {}

  /// What was kept before the place was given up is read again, and so fetched ahead again.
  [[nodiscard]] bool is_kept(position source) const noexcept {
    return choice_->keeps(Place) && base::is_kept(source);
  }

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    if (w.now == worker::does::keeps)
      keep_here(p, w, sink, timing);
    else if (w.now == worker::does::tries)
      try_here(p, w, sink, timing);
    else
      this->up.evaluate(p, w.up, sink, timing);
  }

 private:
  template <class Timing, class Sink>
  void keep_here(sample_position p, worker& w, Sink& sink, Timing timing) const {
    if constexpr (Timing::value) root_of(w.up).landing = {};
    const bool checks = choice_->checks();
    const std::uint64_t begin = checks ? now_ns() : 0;
    if (const kept_form* const found = base::find(p.source.index); found != nullptr) {
      innermost(this->up).pass_over(innermost(w.up));
      base::show(*found, w, sink, timing);
      if (checks) choice_->shown(now_ns() - begin);
      return;
    }
    if (this->table_->full()) {
      this->table_->count_uncached(p.source.index);
      return this->up.evaluate(p, w.up, sink, timing);
    }
    std::unique_ptr<kept_form> made;
    this->up.evaluate(
        p, w.up,
        [&]<class V>(V&& value) {
          if constexpr (shown_before<std::remove_cvref_t<V>>) {
            sink(std::forward<V>(value));
          } else {
            if (differs_when_kept(value)) return void(sink(std::forward<V>(value)));
            made = std::make_unique<kept_form>();
            make_kept(std::forward<V>(value), *made);
            base::show(*made, w, sink, timing);
          }
        },
        timing);
    base::add(p.source.index, made);
  }
  template <class Timing, class Sink>
  [[gnu::noinline]] void try_here(sample_position p, worker& w, Sink& sink, Timing timing) const {
    std::uint64_t shown = now_ns(), bytes = 0;
    this->up.evaluate(
        p, w.up,
        [&]<class V>(V&& value) {
          if constexpr (shown_before<std::remove_cvref_t<V>>) {
            sink(std::forward<V>(value));
          } else {
            if (differs_when_kept(value)) {
              choice_->differs(Place);
              return void(sink(std::forward<V>(value)));
            }
            make_kept(std::forward<V>(value), w.own);
            bytes = base::bytes_taken(w.own);
            shown = now_ns();
            base::show(w.own, w, sink, timing);
          }
        },
        timing);
    choice_->measured(Place, now_ns() - shown, bytes);
  }

  shared<place_choice> choice_;
};

/// The node of the stage that chooses: says of each sample at which place it is kept, or which one is tried.
template <class Up>
class place_choosing_node {
 public:
  struct worker {
    typename Up::worker up;
    [[no_unique_address]] light_tuple<> own;
    stage_cost cost;
    place_turn turn;

    worker() = default;
  };
  static constexpr std::uint32_t depth = Up::depth + 1;
  static constexpr bool has_pieces = Up::has_pieces;
  static constexpr bool has_runs = false, keeps_samples = true;

  Up up;

  place_choosing_node(Up inner, shared<place_choice> choice)
      : up(std::move(inner)), choice_(std::move(choice)) {}

  [[nodiscard]] static bool is_kept(position) noexcept { return false; }
  [[nodiscard]] kept_counters counters() const {
    kept_counters all;
    all.choices.push_back(choice_->get());
    return all;
  }

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    const place_turn turn = choice_->next();
    if (turn != w.turn) tell_places(w.up, w.turn = turn);
    const bool measures = turn.tries && turn.place == 0;
    const std::uint64_t begin = measures ? now_ns() : 0;
    up.evaluate(p, w.up, sink, timing);
    if (measures) choice_->measured(0, now_ns() - begin, 0);
  }

 private:
  shared<place_choice> choice_;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
