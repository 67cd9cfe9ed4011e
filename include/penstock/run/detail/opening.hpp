// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/state.hpp>

#include <concepts>
#include <exception>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

/// What `open` refuses before reading anything: ranks that would drift apart, and states that do not fit.
namespace penstock::inline v0_1::detail {

/// The name of the part that loses `lockstep`.
template <class Plan>
std::string lockstep_loser(const Plan& p) {
  std::string name;
  const auto one = [&]<class Stage>(const Stage&) {
    if constexpr (choosing_stage<Stage> || online_pack<Stage>) {
      if (!name.empty()) return;
      if constexpr (named_part<Stage>)
        name = Stage::stage_name;
      else
        name = "a stage that decides from values";
    }
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  return name.empty() ? "the source, which can only be read forward" : name;
}

template <class Plan>
void check_lockstep(const Plan& p) {
  if constexpr (plan_parts<Plan>::batched && !lockstep<Plan>) {
    if (world_of(p).size > 1)
      throw error(errc::argument, {"ranks would do different numbers of batches: `lockstep` is lost by ",
                                   lockstep_loser(p), "; write steps(n) after batch"});
  }
}

/// Why an epoch has no batch: numbers from the source to the batch.
struct empty_epoch {
  std::uint64_t source = 0;   ///< samples of the source
  std::uint64_t reached = 0;  ///< samples that reach the batch stage
  std::uint64_t batches = 0;  ///< batches that this stage makes from them, on this rank
  std::uint64_t ranks = 1;
  std::uint64_t step = 0;  ///< samples of a global step; 0 if steps differ
  std::string batch{};     ///< the batch stage, as `describe` prints it
};

[[noreturn, gnu::cold]] void refuse_empty(const empty_epoch& why);

/// Refuses a plan that is known to have no batch. `known`: the number of batches per epoch, if known.
template <class Plan, class Cut>
void check_batches(const Plan& p, const Cut& mine, std::optional<std::uint64_t> known, bool allowed) {
  using parts = plan_parts<Plan>;
  if constexpr (parts::batched && !parts::forward) {
    if (allowed || known != std::uint64_t{0}) return;
    empty_epoch why{.source = p.source().size(), .reached = mine.size, .ranks = mine.world};
    if constexpr (parts::direct && !parts::facts.uneven) {
      why.batches = mine.steps();
      why.step = mine.global;
    }
    const auto& batch = detail::at<parts::in::batch>(p.stages());
    why.batch = batch.describe();
    refuse_empty(why);
  }
}

[[noreturn, gnu::cold]] void refuse_state(std::initializer_list<piece> why);

/// What a plan requires of a state.
struct state_needs {
  bool resumable = false, elastic = false, batched = false;
  bool global = false;          ///< set by `global_batch`
  std::uint64_t step_size = 0;  ///< samples of a step, over all ranks of this run
};

/// The state of this rank, from a single or a merged state; throws if a run cannot resume there. `mine` is
/// this rank's, with the part that all states of the run have in common.
[[nodiscard]] const state& fitting_state(const state& given, const state& mine, const state_needs& needs);

template <class Plan>
const state& state_that_fits(const Plan& p, const state& given, const state& mine) {
  using parts = plan_parts<Plan>;
  state_needs needs{.resumable = resumable<Plan>, .elastic = elastic<Plan>, .batched = parts::batched};
  if constexpr (parts::batched && !parts::facts.uneven) {
    const auto& batch = at<parts::in::batch>(p.stages());
    needs.global = batch.global;
    needs.step_size = batch.global ? batch.size : batch.global_size(mine.world);
  }
  return fitting_state(given, mine, needs);
}

/// A run that was moved from was asked for something.
[[noreturn, gnu::cold]] void refuse_moved_run();
/// A loop went on after another one over the same run had begun inside it.
[[noreturn, gnu::cold]] void refuse_outer_loop(std::string_view what);
/// `*run.next()` without a batch.
[[noreturn, gnu::cold]] void refuse_no_value(const std::exception_ptr& failure);

/// What `open` was given.
struct open_arguments {
  const state* where = nullptr;
  std::stop_token token;

  // No conversions: the state is used after this call, when a converted one would be gone.
  template <std::derived_from<state> State>
  void take(const State& s) {
    where = &s;
  }
  void take(std::stop_token t) { token = std::move(t); }
  template <class T>
    requires(!std::derived_from<T, state> && !std::convertible_to<const T&, std::stop_token>)
  void take(const T&) {
    if constexpr (std::convertible_to<const T&, std::string_view>)
      static_assert(never<T>,
                    "penstock: open takes a state, and this is a text; write "
                    "open(state_from_string(text)), the opposite of to_string(run.state())");
    else
      static_assert(never<T>,
                    "penstock: open takes a state, a std::stop_token, or both; what says how to run is a "
                    "stage, as workers(4) is");
  }
};

}  // namespace penstock::inline v0_1::detail

#ifndef PENSTOCK_COMPILED
#include <penstock/run/detail/opening.ipp>
#endif
