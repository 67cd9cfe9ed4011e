// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/subset.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE subset_stage::subset_stage(shared<const detail::position_list> kept, std::uint64_t dataset,
                                           std::string what, std::string says)
    : kept_(std::move(kept)),
      dataset_(dataset),
      mark_(kept_->fingerprint()),
      what_(std::move(what)),
      says_(std::move(says)) {}

PENSTOCK_INLINE detail::listed_order subset_stage::make(const order_input& in) const {
  detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
  return {in, kept_};
}

}  // namespace penstock::inline v0_1
