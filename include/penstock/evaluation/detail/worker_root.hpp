// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/element.hpp>
#include <penstock/core/open_sample.hpp>
#include <penstock/core/record.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

/// What is the same in the workers of all chains.
namespace penstock::inline v0_1 {

/// The cost of one stage for one worker, from the samples that were timed: its own work, plus the time to
/// write whatever it left unfinished to its destination.
struct stage_cost {
  std::uint64_t nanoseconds = 0;
  std::uint64_t timed = 0;
};

/// Whether an evaluation is timed: a type, so that the untimed one costs nothing.
struct untimed : std::false_type {
  static constexpr std::uint64_t now() noexcept { return 0; }
};

namespace detail {

/// The time of a steady clock.
[[nodiscard]] std::uint64_t now_ns() noexcept;

}  // namespace detail

/// A timed evaluation, and its clock in nanoseconds.
struct timed : std::true_type {
  static std::uint64_t now() noexcept { return detail::now_ns(); }
};

namespace detail {

/// Adds to a cost one timed call, which began then.
template <class Timing>
void count_call(stage_cost& cost, std::uint64_t begin, Timing) noexcept {
  if constexpr (Timing::value) {
    cost.nanoseconds += Timing::now() - begin;
    ++cost.timed;
  }
}

/// Whether a value of type `Part` may have been taken unchanged out of a `Whole`: as the whole, a field, a
/// member, or an optional blob of it.
template <class Part, class Whole>
inline constexpr bool is_part_of = std::is_same_v<Part, Whole>;
template <class Part, class... Fields>
inline constexpr bool is_part_of<Part, record<Fields...>> =
    (is_part_of<Part, std::remove_cvref_t<typename Fields::type>> || ...);
template <class Part, open_sample Whole>
inline constexpr bool is_part_of<Part, Whole> =
    std::is_same_v<Part, Whole> || std::is_same_v<Part, typename Whole::blob_type> || requires {
      requires unfinished<Part> && std::is_same_v<typename Part::blob_type, typename Whole::blob_type>;
    };

/// Whether a stage that turns a `Given` into a `Result` creates something unfinished, rather than just
/// passing it on.
template <class Given, class Result>
inline constexpr bool makes_unfinished = unfinished<Result> && !is_part_of<Result, Given>;
template <class Given, class... Fields>
inline constexpr bool makes_unfinished<Given, record<Fields...>> =
    (makes_unfinished<Given, std::remove_cvref_t<typename Fields::type>> || ...);

/// The time that a value takes to write itself to its destination, in timed calls. The outermost node
/// measures it; on the way back inwards, the first stage that created something unfinished in the value
/// claims the time. The source claims the time of values that it handed out unfinished; nobody claims the
/// copy of a finished value.
class landing_time {
 public:
  /// Passes a value to whatever comes next. A following stage announces itself with `passed`; if none does,
  /// this call is the landing.
  template <class Timing, class Sink, class V>
  void hand_on(Timing, Sink& sink, V&& value) {
    another_stage_ = false;
    const std::uint64_t begin = Timing::now();
    sink(std::forward<V>(value));
    if (!another_stage_) open_ += Timing::now() - begin;
  }
  /// The time that a stage claims if it made a `Result` from a `Given`.
  template <class Given, class Result>
  [[nodiscard]] std::uint64_t share_of_stage() noexcept {
    if constexpr (makes_unfinished<Given, Result> || !has_unfinished<Result>::value) {
      const std::uint64_t share = std::exchange(open_, 0);
      return makes_unfinished<Given, Result> ? share : 0;
    }
    return 0;
  }
  template <class Element>
  [[nodiscard]] std::uint64_t share_of_source() noexcept {
    const std::uint64_t share = std::exchange(open_, 0);
    return has_unfinished<Element>::value || open_sample<Element> ? share : 0;
  }
  /// Call at the end of a stage's turn, whether or not it passed anything on.
  void passed() noexcept { another_stage_ = true; }

 private:
  std::uint64_t open_ = 0;  // nanoseconds not yet claimed
  bool another_stage_ = false;
};

/// The root of every worker.
struct worker_root {
  static constexpr std::uint32_t no_stage = 0xffffffffu;
  std::uint32_t piece = 0;
  std::uint32_t failed = no_stage;  // the number of the stage whose function threw last; 0 is the source
  stage_cost cost;
  landing_time landing;
};
/// The worker of an innermost node: it has the root, and no worker below it.
template <class W>
concept innermost_worker = requires(std::remove_const_t<W>& w) {
  { w.root } -> std::same_as<worker_root&>;
};
/// Lives while the function of a stage runs: remembers its number if it throws. Costs nothing if it does not.
struct failure_mark {
  worker_root& root;
  std::uint32_t number;
  bool armed = true;
  ~failure_mark() {
    if (armed && root.failed == worker_root::no_stage) root.failed = number;
  }
};

/// The node of the source in a chain, or its worker in the chain's.
auto& innermost(auto& all) noexcept {
  if constexpr (requires { all.up; })
    return innermost(all.up);
  else
    return all;
}

/// The root at the bottom of a worker.
worker_root& root_of(auto& w) noexcept { return innermost(w).root; }

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/evaluation/detail/worker_root.ipp>
#endif
