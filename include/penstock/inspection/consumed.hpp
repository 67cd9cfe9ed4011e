// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/inspection/detail/plan_view.hpp>

namespace penstock::inline v0_1 {

/// A run of samples of the source that were delivered: `count` samples from number `first`.
struct consumed_range {
  std::uint64_t epoch = 0;  ///< the source's epoch
  std::uint64_t first = 0, count = 0;
};

namespace detail {

/// The type-erased callback of `for_each_consumed`.
struct consumed_listener {
  void* who;
  void (*tell)(void* who, const consumed_range& run);
};

/// Reports the runs of all samples delivered before a state.
void visit_consumed(plan_view plan, const state& where, const consumed_listener& found);

}  // namespace detail

/// Calls `found(consumed_range)` for exactly the samples that were delivered before a state, to all ranks
/// together, in ascending order within each source epoch: the data that went into the model.
///
/// Reads no sample; works for the plans that `prove` accepts. Includes bad samples that were skipped, but
/// not the samples that stood in for replaced ones. Uses one bit of memory per sample for each source epoch
/// within an epoch of the plan, and 8 bytes per position after `shuffle_buffer`. Throws
/// `error(errc::state)` if the state does not belong to this plan; the plan may omit random stages.
template <class Source, class... Stages, class Found>
void for_each_consumed(const plan<Source, Stages...>& p, const state& where, Found found) {
  using plan_type = plan<Source, Stages...>;
  using parts = plan_parts<plan_type>;
  static_assert(parts::direct && elastic<plan_type>,
                "penstock: for_each_consumed needs an elastic plan with a batch, without filter, unbatch "
                "or forward source; put shuffle_buffer before shard");
  const bool same_data = where.dataset == p.source().fingerprint();
  if (!same_data || where.sequence != sequence_fingerprint(p)) {
    const std::vector<std::string> words = sequence_words(p);
    std::string why = detail::first_difference(where.plan, words, same_data);
    if (why.empty()) why = detail::first_difference(where.plan, words, false);
    if (why.empty()) why = same_data ? "a stage was changed" : "its data has another fingerprint";
    throw error(errc::state, {"this state is not of this plan: ", why});
  }
  detail::viewed_plan<plan_type> viewed(p);
  detail::visit_consumed(viewed.view(), where, {&found, [](void* who, const consumed_range& run) {
                                                  (*static_cast<Found*>(who))(run);
                                                }});
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/inspection/consumed.ipp>
#endif
