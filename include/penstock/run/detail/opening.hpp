// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/plan.hpp>
#include <penstock/evaluation/parts.hpp>
#include <penstock/run/state.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// What `open` refuses before anything is read: ranks that would drift apart, and states of something else.
namespace penstock::inline v0_1::detail {

/// Who lost `lockstep`, in words.
template <class Plan>
std::string lockstep_loser(const Plan& p) {
  std::string name = "the source, which can only be read forward";
  bool found = false;
  const auto one = [&]<class Stage>(const Stage&) {
    if constexpr (part_of_kind<Stage, decider_tag> || part_of_kind<Stage, expander_tag>) {
      if (!found) name = "a stage that decides from values";
      if constexpr (requires { Stage::stage_name; }) {
        if (!found) name = Stage::stage_name;
      }
      found = true;
    }
  };
  p.stages().apply([&](const auto&... stages) { (one(stages), ...); });
  return name;
}

template <class Plan>
void check_lockstep(const Plan& p) {
  if constexpr (plan_parts<Plan>::batched && !lockstep<Plan>) {
    if (world_of(p).size > 1)
      throw error(errc::argument, {"ranks would do different numbers of batches: `lockstep` is lost by ",
                                   lockstep_loser(p), "; write steps(n) after batch"});
  }
}

[[noreturn]] inline void refuse_state(std::initializer_list<piece> why) {
  throw error(errc::state, {"this state cannot be continued here: ", text(why)});
}

/// The state of the rank that `mine` is of, from a state or a merged one; throws where the run of `p` cannot
/// go on from it. `mine` is what all states of that run have in common.
template <class Plan>
const state& state_that_fits(const Plan& p, const state& given, const state& mine) {
  const bool is_merged = !given.ranks.empty();
  if (is_merged && given.ranks.size() != given.world)
    refuse_state({"it was merged of ", given.ranks.size(), " ranks and says ", given.world});
  const bool fits = given.world == mine.world;
  const state& s = is_merged && fits ? given.ranks[static_cast<std::size_t>(mine.rank)] : given;
  if (s.version > state::current_version) refuse_state({"it is of version ", s.version});
  if (!resumable<Plan>) refuse_state({"the source can only be read forward and cannot go to a place"});
  const std::string difference = first_difference(given.plan, mine.plan, s.dataset == mine.dataset);
  if (s.dataset != mine.dataset) {
    refuse_state(
        {"it is of another dataset: ",
         difference.empty() ? "the names are the same, the data (the fingerprints) are not" : difference});
  }
  if (s.sequence != mine.sequence) {
    const std::string other =
        difference.empty() ? first_difference(given.plan, mine.plan, false) : difference;
    refuse_state({"it is of another sequence: ", other.empty() ? "a stage was changed" : other});
  }
  if (!elastic<Plan> && (!fits || s.rank != mine.rank)) {
    refuse_state({"it is of ", is_merged ? "" : "rank ", is_merged ? "" : std::to_string(s.rank) + " of ",
                  s.world, is_merged ? " ranks" : "", ", this is rank ", mine.rank, " of ", mine.world,
                  ", and the plan is not elastic"});
  }
  using parts = plan_parts<Plan>;
  if (!parts::batched && s.bad != 0 && (!fits || s.rank != mine.rank))
    refuse_state({"it is of another ", fits ? "rank" : "number of ranks",
                  ", and bad samples were left out of a loop without batches"});
  if (s.rank >= s.world) refuse_state({"it is of rank ", s.rank, " of ", s.world});
  if constexpr (parts::batched) {
    const auto& batch = at<parts::in::batch>(p.stages());
    if (batch.global ? s.world > batch.size : batch.global_size(mine.world) % s.world != 0)
      refuse_state({batch.global ? "it is of more ranks than the global batch has samples"
                                 : "its number of ranks does not divide the global batch"});
  }
  if (s.epoch >> 63 != 0) refuse_state({"there is no epoch ", s.epoch});
  return s;
}

}  // namespace penstock::inline v0_1::detail
