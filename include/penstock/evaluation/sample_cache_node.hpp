// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/cached_form.hpp>
#include <penstock/core/position.hpp>
#include <penstock/evaluation/detail/worker_root.hpp>
#include <penstock/evaluation/next_samples.hpp>
#include <penstock/evaluation/sample_cache_table.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1 {

/// A node that shows samples from memory where they are kept, and keeps others. `Element` is what arrives
/// from `Up`.
template <class Up, class Element>
class sample_cache_node {
  using form = kept<Element>;

 public:
  struct worker {
    typename Up::worker up;
    form own{};  // a sample that does not fit; keeps its capacity
    stage_cost cost;

    worker() = default;
  };
  static constexpr std::uint32_t depth = Up::depth + 1;
  static constexpr bool has_pieces = Up::has_pieces;
  static constexpr bool has_runs = false, keeps_samples = true;

  Up up;

  sample_cache_node(Up inner, std::uint64_t limit)
      : up(std::move(inner)), table_(new detail::sample_cache_table(limit, destroy)) {}

  /// Whether a sample of the source is kept, and so not read again.
  [[nodiscard]] bool is_kept(position source) const noexcept { return table_->find(source.index) != nullptr; }
  [[nodiscard]] kept_counters counters() const noexcept { return table_->counters(); }

  template <class Timing, class Sink>
  void evaluate(sample_position p, worker& w, Sink&& sink, Timing timing) const {
    auto& root = detail::root_of(w.up);
    if constexpr (Timing::value) {
      root.landing = {};
      const std::uint64_t begin = Timing::now();
      const form* const found = find(p.source);
      count(w, Timing::now() - begin);
      if (found == nullptr) {
        std::unique_ptr<form> made;
        up.evaluate(
            p, w.up,
            [&]<class V>(V&& value) {
              const std::uint64_t arrived = Timing::now();
              const form& here = make(p.source, std::forward<V>(value), made, w.own);
              w.cost.nanoseconds += Timing::now() - arrived;
              root.landing.hand_on(timing, sink, show_cached(here));
              w.cost.nanoseconds += root.landing.template share_of_stage<form, shown_of<Element>>();
              root.landing.passed();
            },
            timing);
        const std::uint64_t evaluated = Timing::now();
        add(p.source, made);
        w.cost.nanoseconds += Timing::now() - evaluated;
      } else {
        detail::innermost(up).pass_over(detail::innermost(w.up));
        root.landing.hand_on(timing, sink, show_cached(*found));
        w.cost.nanoseconds += root.landing.template share_of_stage<form, shown_of<Element>>();
        root.landing.passed();
      }
    } else {
      if (const form* const found = find(p.source); found != nullptr) {
        detail::innermost(up).pass_over(detail::innermost(w.up));
        sink(show_cached(*found));
      } else {
        std::unique_ptr<form> made;
        up.evaluate(
            p, w.up,
            [&]<class V>(V&& value) {
              sink(show_cached(make(p.source, std::forward<V>(value), made, w.own)));
            },
            timing);
        add(p.source, made);
      }
    }
  }

 private:
  /// A sample in its kept form: in an object of its own, or in a place of the worker if the table is full.
  template <class V>
  [[nodiscard]] const form& make(position source, V&& value, std::unique_ptr<form>& made,
                                 form& passing) const {
    if (!table_->full()) made = std::make_unique<form>();
    form& into = made ? *made : passing;
    make_kept(std::forward<V>(value), into);
    if (!made) table_->count_uncached(source.index);
    return into;
  }
  /// Once all is well: a source may find only after it has shown a sample that the bytes were bad.
  void add(position source, std::unique_ptr<form>& made) const {
    if (!made) return;
    constexpr std::uint64_t of_allocator = 32;  // about what it takes for its own
    const std::uint64_t bytes = sizeof(form) + bytes_of_kept(*made) + of_allocator;
    const void* const there = table_->add(source.index, made.get(), bytes);
    if (there == made.get()) (void)made.release();
    if (there == nullptr) table_->count_uncached(source.index);
  }
  static void destroy(void* one) noexcept { delete static_cast<form*>(one); }
  [[nodiscard]] const form* find(position source) const noexcept {
    return static_cast<const form*>(table_->use(source.index));
  }
  static void count(worker& w, std::uint64_t nanoseconds) noexcept {
    w.cost.nanoseconds += nanoseconds;
    ++w.cost.timed;
  }

  shared<detail::sample_cache_table> table_;
};

}  // namespace penstock::inline v0_1
