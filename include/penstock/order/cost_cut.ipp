// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/cost_cut.hpp>

#include <penstock/core/message.hpp>
#include <penstock/order/detail/position_list.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void dealt_batches::refuse() const {
  if (batches_->failure) std::rethrow_exception(batches_->failure);
  const detail::costly_sample& found = *batches_->too_costly;
  throw error(errc::argument, {"sample ", found.sample, " costs ", found.cost, ", but a batch holds ", limit_,
                               " at most; raise the limit, or leave the sample out with subset"})
      .in_stage("batch_by")
      .add_context(found.at);
}

PENSTOCK_INLINE void detail::check_cost_cut(std::uint64_t positions, std::uint64_t limit) {
  if (limit == 0)
    throw error(errc::argument, "batch_by with a limit of 0 holds no sample; give it at least 1")
        .in_stage("batch_by");
  if (limit >> 63 != 0)
    throw error(errc::argument, {"the limit of batch_by is negative or absurd: ", limit,
                                 " as an unsigned number; it is below 2^63"})
        .in_stage("batch_by");
  if (positions >> 40 != 0)
    throw error(errc::argument, {"batch_by goes through an epoch before its first batch, and this one has ",
                                 positions, " positions; write repeat(n) or take(n) before it"})
        .in_stage("batch_by");
}

PENSTOCK_INLINE void detail::rethrow_cost(error& e, position at, std::uint64_t sample) {
  e.in_part(text({"the cost of sample ", sample})).in_stage("batch_by").add_context(at);
  throw;
}

PENSTOCK_INLINE void detail::check_cost_values(const cut_input& in, std::uint64_t values,
                                               std::uint64_t dataset, std::string_view what) {
  order_input places{in.samples};
  places.places.reset(new source_places(in.dataset, in.samples));
  check_places(places, values, dataset, what, "batch_by");
}

PENSTOCK_INLINE std::string detail::cost_text(std::string_view costs, std::uint64_t limit, bool padded,
                                              tail at_end) {
  return text({"batch_by(", costs, costs.empty() ? "" : ", ", "limit ", limit, padded ? " with padding" : "",
               ", tail ", to_string(at_end), ")"});
}

}  // namespace penstock::inline v0_1
