// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/detail/opening.hpp>

namespace penstock::inline v0_1::detail {

PENSTOCK_INLINE void refuse_empty(const empty_epoch& why) {
  std::string text = "an epoch of this plan has no batch: ";
  std::string_view remedy = "give it some";
  if (why.source == 0) {
    text += "the source has no samples";
  } else if (why.reached == 0) {
    text +=
        detail::text({"the source has ", why.source, " samples, and none is left after its order stages"});
    remedy = "let some of them pass";
  } else if (why.batches == 0) {
    text +=
        detail::text({why.batch, " makes none of ", why.reached, why.reached == 1 ? " sample" : " samples"});
    if (why.step != 0 && why.ranks > 1)
      text += detail::text({", and a global step on ", why.ranks, " ranks takes ", why.step});
    remedy = why.step != 0 ? "use a smaller batch or tail::keep" : "use tail::keep";
  } else {
    text += detail::text({"the stages after ", why.batch, " leave none of ", why.batches,
                          why.batches == 1 ? " batch" : " batches"});
    remedy = "let some of them pass";
  }
  throw error(errc::argument, {text, "; ", remedy, ", or write | allow_empty if that is intended"})
      .in_stage("batch");
}

PENSTOCK_INLINE void refuse_state(std::initializer_list<piece> why) {
  throw error(errc::state, {"this state cannot be resumed here: ", text(why)});
}

PENSTOCK_INLINE const state& fitting_state(const state& given, const state& mine, const state_needs& needs) {
  const bool is_merged = !given.ranks.empty();
  if (is_merged && given.ranks.size() != given.world)
    refuse_state({"it was merged of ", given.ranks.size(), " ranks and says ", given.world});
  const bool fits = given.world == mine.world;
  const state& s = is_merged && fits ? given.ranks[static_cast<std::size_t>(mine.rank)] : given;
  if (s.version != state::current_version) refuse_state({"it is of version ", s.version});
  if (!needs.resumable) refuse_state({"the source can only be read forward and cannot seek"});
  const std::string difference = first_difference(given.plan, mine.plan, s.dataset == mine.dataset);
  if (s.dataset != mine.dataset) {
    refuse_state(
        {"it is of another dataset: ",
         difference.empty() ? "the names match, but the data (the fingerprints) differ" : difference});
  }
  if (s.sequence != mine.sequence) {
    const std::string other =
        difference.empty() ? first_difference(given.plan, mine.plan, false) : difference;
    refuse_state({"it is of another sequence: ", other.empty() ? "a stage was changed" : other});
  }
  if (s.random != mine.random)
    refuse_state({"it is of other random stages: ", difference.empty() ? "a key was changed" : difference});
  if (!needs.elastic && (!fits || s.rank != mine.rank)) {
    refuse_state({"it is of ", is_merged ? "" : "rank ", is_merged ? "" : std::to_string(s.rank) + " of ",
                  s.world, is_merged ? " ranks" : "", ", this is rank ", mine.rank, " of ", mine.world,
                  ", and the plan is not elastic"});
  }
  if (!needs.batched && s.bad != 0 && (!fits || s.rank != mine.rank))
    refuse_state({"it is of another ", fits ? "rank" : "number of ranks",
                  ", and bad samples were left out of a loop without batches"});
  if (s.rank >= s.world) refuse_state({"it is of rank ", s.rank, " of ", s.world});
  if (needs.batched && (needs.global ? s.world > needs.step_size : needs.step_size % s.world != 0))
    refuse_state({needs.global ? "it is of more ranks than the global batch has samples"
                               : "its number of ranks does not divide the global batch"});
  if (s.epoch >> 63 != 0) refuse_state({"there is no epoch ", s.epoch});
  return s;
}

PENSTOCK_INLINE void refuse_moved_run() {
  throw error(errc::argument,
              "this run was moved from, and has nothing to deliver; use the run that it was moved to");
}

PENSTOCK_INLINE void refuse_outer_loop(std::string_view what) {
  throw error(
      errc::argument,
      {"another loop over this ", what,
       " began inside this one, and the batches of both are the same ones; open the plan once more for the "
       "inner loop"});
}

PENSTOCK_INLINE void refuse_no_value(const std::exception_ptr& failure) {
  if (failure != nullptr) std::rethrow_exception(failure);
  throw error(errc::argument,
              "run.next() has no batch: the run has ended; test the result before you use it");
}

}  // namespace penstock::inline v0_1::detail
