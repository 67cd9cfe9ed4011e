// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/inspection/detail/headspace_legs.hpp>
#include <penstock/inspection/detail/repeated_samples.hpp>
#include <penstock/observe/verdict.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/concepts.hpp>

#include <chrono>
#include <concepts>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Options of `headspace`.
struct headspace_options {
  std::uint64_t batches = 32;                       ///< that count in each turn of a loop
  std::chrono::nanoseconds at_least{100'000'000};   ///< a turn takes more batches until this has passed
  std::uint64_t warm_up = 4;                        ///< batches before those
  unsigned turns = 3;                               ///< of each loop, 1 to 1000; the median counts
  std::chrono::nanoseconds within{60'000'000'000};  ///< all turns together
  std::stop_token stop{};                           ///< ends it early
};

/// Where `headspace` finds out what single stages cost.
enum class headspace_stages {
  measured,  ///< in loops without them: up to three more plans to compile
  counted,   ///< from the counters of the run alone
};

/// What a stage costs the loader.
struct headspace_stage {
  std::string name;
  double busy = 0;        ///< seconds of workers for a step, all workers together
  double saved = 0;       ///< seconds a step that the loader alone would be faster if this cost nothing
  bool measured = false;  ///< by a loop without it alone; otherwise by the stage's share of the workers' time
};

/// What `headspace` found.
struct headspace_report {
  double real = 0;                      ///< seconds a step with the loader
  double cached = 0;                    ///< with one batch again and again: the step alone
  double loader = 0;                    ///< a batch of the loader alone
  double spread = 0;                    ///< by how much the turns of `real` differed, as a share of it
  std::uint64_t steps = 0;              ///< that `real` is of
  bool stopped = false;                 ///< before each loop had all its turns
  std::vector<headspace_stage> stages;  ///< source first, the copy to the device last
  verdict why;                          ///< `limit`, what holds the loop back, and what to do

  /// The share of its time that the loop would save if batches cost nothing: 0 to 1.
  [[nodiscard]] double share() const noexcept { return real > cached && real > 0 ? 1 - cached / real : 0; }
  /// How many times as fast the loop would be then, which is the most that any loader could gain; 0 if it is
  /// not known.
  [[nodiscard]] double max_gain() const noexcept {
    return cached <= 0 ? 0 : real > cached ? real / cached : 1;
  }
  /// One paragraph.
  [[nodiscard]] std::string text() const;
  /// One picture, readable on light and on dark: the three times, and what each stage costs.
  [[nodiscard]] std::string svg() const;
};

namespace detail {

/// What the loops of `headspace` took.
struct headspace_legs {
  headspace_leg real, cached, loader, first, last, on_host;
  std::size_t first_stages = 0, last_stages = 0;  ///< counted stages that cost nothing in these legs
  std::string copy{};                             ///< the stage that copies to the device
  double processors = 1;                          ///< for the step's threads and the workers
  bool loop_gathers = false;                      ///< the thread of the loop puts batches together
  bool stopped = false;
};

[[nodiscard]] headspace_report judge_headspace(const headspace_legs& legs);
[[nodiscard]] headspace_limits limits_of_turns(const headspace_options& options, unsigned legs);
/// The processors that this thread and the workers of a run may use.
[[nodiscard]] double processors_for(const run_options& options);
[[noreturn, gnu::cold]] void refuse_headspace(std::string_view why);

/// The loop of a plan with less work, from its beginning.
template <class Plan>
bool take_lesser_turn(const Plan& p, const headspace_limits& limits, std::uint64_t warm_up,
                      headspace_leg& leg) {
  headspace_turn turn(limits);
  run<Plan> less(p, options_of(p), limits.stop);
  endless_batches<run<Plan>> batches(less);
  fill_repeated(less, batches, turn);
  take_ready(less, batches, turn);
  return take_turn(
      turn, leg, warm_up, [&] { return batches.next(less) != nullptr; }, [&] { return less.counters(); });
}

}  // namespace detail

/// What loading costs a training loop, and which part of the loader to blame: runs your step with the real
/// loader, with one batch again and again, and the loader without the step.
///
///     const auto numbers = generated(10'000, [](std::uint64_t i) { return i * i; }) | batch(64);
///     const auto found = headspace(numbers, [&](auto& b) { train(b); });
///     std::cout << found.text() << "\n";
///     std::ofstream("headspace.svg") << found.svg();
///
/// In: any plan, and a step that is called as the body of a loop is, with `auto& b`: a batch, or a sample if
/// the plan has no `batch`. Out: a `headspace_report`. `real` is what you have; `cached` is what a loader
/// that costs nothing would give you; `loader` is what you would have if the step cost nothing.
///
/// The three loops take turns, and the median of each one's turns counts, so what else the machine does, or
/// that it gets slower, disturbs all alike. A turn begins without batches that were ready before it. Epochs
/// follow one another, so a plan may have fewer batches than a turn. The loop with one batch uses a real one,
/// made by the calling thread and held all the time; workers rest meanwhile. The step gets it as it left it:
/// what it wrote there is still there.
///
/// Then it looks for the costs of stages: the loader alone again, where 32 samples stand in for all, kept in
/// memory behind the source (or the first stage whose values can be kept), and behind the last stage that
/// does the same in every epoch; and without the copy to its device. What this does not tell apart is divided
/// as the time of the workers is (`run.counters()`). Random stages work in all loops. Over a source that is
/// read forward, after `filter` and with `pack`, counters tell all. `headspace<headspace_stages::counted>`
/// compiles none of these loops: use it also if a function does not compile behind `keep_in_memory`.
///
/// The verdict: `consumer` if loading costs less than 5 %, or the loop does not wait for it; `starved` if
/// step and loader together have more to compute than their processors can do in the time of the slower one;
/// `jitter` as `judge` says it; else `io`, `cpu`
/// or `copy`, by the stage that costs most.
///
/// Cost: `turns` times up to six loops of `batches`, about `within` at most: each turn gets its part of it,
/// and takes one step if that has passed. Memory: two runs, one batch, and the 32 samples, up to 1 GiB. The
/// plan is opened several times. A plan with `keep_in_memory` has kept what the turns so far have seen.
/// A `stop` token ends it after the current step, with `stopped` in the report.
/// Throws what stages and the step throw, with all runs stopped; `errc::argument` if there is no batch, if
/// the step moves the batch away, and for options that measure nothing. Threads: call it from the thread of
/// the loop; it waits for all it has started.
/// Sources: SPDL's headspace analysis (facebookresearch/spdl, CacheDataLoader), and the differential
/// measurement of DS-Analyzer (Mohan et al., Analyzing and Mitigating Data Stalls in DNN Training, 2021).
template <headspace_stages Stages = headspace_stages::measured, class Source, class... Parts, class Step>
[[nodiscard]] headspace_report headspace(const plan<Source, Parts...>& p, Step&& step,
                                         const headspace_options& options = {}) {
  using plan_type = plan<Source, Parts...>;
  using parts = plan_parts<plan_type>;
  using run_type = run<plan_type>;
  static_assert(std::invocable<Step&, typename run_type::value_type&>,
                "penstock: headspace calls the step with what a loop over the plan would get; write "
                "headspace(plan, [&](auto& batch) { train(batch); })");
  constexpr bool measured = Stages == headspace_stages::measured;
  constexpr detail::repeat_places places =
      measured ? detail::repeat_places_of<plan_type>::value : detail::repeat_places{};
  constexpr bool has_first = places.first != detail::repeat_places::nowhere;
  constexpr bool has_last = places.last != detail::repeat_places::nowhere;
  constexpr bool copies = [] {
    if constexpr (measured && parts::batched)
      return run_type::value_type::session_type::copies;
    else
      return false;
  }();
  const detail::headspace_limits limits = detail::limits_of_turns(options, 3 + has_first + has_last + copies);

  detail::headspace_legs legs;
  legs.loop_gathers = !parts::direct;
  run_options alone = options_of(p);
  alone.workers = 0;
  alone.depth = 2;
  alone.ahead = 0;
  run_type held(p, alone, options.stop);
  detail::endless_batches<run_type> of_held(held);
  auto* const kept = of_held.next(held);
  run_type real(p, options_of(p), options.stop);
  legs.processors = detail::processors_for(real.options());
  detail::endless_batches<run_type> batches(real);
  const auto counters = [&] { return real.counters(); };
  const auto load = [&] { return batches.next(real) != nullptr; };
  const auto train = [&] {
    auto* const b = batches.next(real);
    if (b == nullptr) return false;
    step(*b);
    return true;
  };
  const auto repeat = [&] {
    step(*kept);
    if constexpr (parts::batched) {
      if (!*kept)
        detail::refuse_headspace(
            "the step moves its batch away, so it cannot get the same one again; let it take the batch by "
            "reference");
    }
    return true;
  };
  std::uint64_t fills = 0;  // steps until as many batches are ready as there can be
  if constexpr (parts::direct) fills = real.options().workers == 0u ? 0 : real.counters().depth;

  bool goes_on = kept != nullptr && !options.stop.stop_requested();
  for (unsigned i = 0; goes_on && i < options.turns; ++i) {
    {
      detail::headspace_turn turn(limits);
      detail::take_ready(real, batches, turn);
      goes_on = detail::take_turn(turn, legs.real, options.warm_up + fills, train, counters);
    }
    if (goes_on) {
      detail::wait_until_idle(real, legs.real.turns.back(), detail::headspace_turn(limits));
      detail::headspace_turn turn(limits);
      goes_on = detail::take_turn(turn, legs.cached, options.warm_up, repeat, counters);
    }
    if (goes_on) {
      detail::headspace_turn turn(limits);
      detail::take_ready(real, batches, turn);
      goes_on = detail::take_turn(turn, legs.loader, options.warm_up, load, counters);
    }
    if constexpr (has_first || copies)
      if (goes_on) detail::wait_until_idle(real, legs.real.turns.back(), detail::headspace_turn(limits));
    if constexpr (has_first) {
      legs.first_stages = detail::repeat_places_of<plan_type>::counted(places.first);
      goes_on = goes_on && detail::take_lesser_turn(detail::with_repeated_samples<places.first>(p), limits,
                                                    options.warm_up, legs.first);
    }
    if constexpr (has_last) {
      legs.last_stages = detail::repeat_places_of<plan_type>::counted(places.last);
      goes_on = goes_on && detail::take_lesser_turn(detail::with_repeated_samples<places.last>(p), limits,
                                                    options.warm_up, legs.last);
    }
    if constexpr (copies) {
      legs.copy = text_of_stage(detail::at<parts::in::template place<device_tag>>(p.stages()));
      goes_on = goes_on &&
                detail::take_lesser_turn(detail::without_device(p), limits, options.warm_up, legs.on_host);
    }
  }
  legs.stopped = options.stop.stop_requested();
  if (!goes_on && !legs.stopped)
    detail::refuse_headspace(
        "the plan has no batch, so there is no step to measure; see what its filters drop");
  return detail::judge_headspace(legs);
}
/// Of a source alone: its samples.
template <headspace_stages Stages = headspace_stages::measured, source Source, class Step>
[[nodiscard]] headspace_report headspace(const Source& source, Step&& step,
                                         const headspace_options& options = {}) {
  return headspace<Stages>(plan<Source>(source), std::forward<Step>(step), options);
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/headspace.ipp>
#endif
