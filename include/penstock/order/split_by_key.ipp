// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/order/split_by_key.hpp>

#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE split_by_key_stage split_by_key_stage::rest() const {
  split_by_key_stage made = *this;
  made.rest_ = !rest_;
  std::swap(made.kept_, made.others_);
  return made;
}

PENSTOCK_INLINE detail::listed_order split_by_key_stage::make(const order_input& in) const {
  detail::check_places(in, kept_->upstream(), dataset_, what_, stage_name);
  return {in, kept_};
}

PENSTOCK_INLINE std::string split_by_key_stage::describe() const {
  return detail::text({"split_by_key(", what_, ", ", detail::fraction_text(fraction_), ", seed ", seed_,
                       rest_ ? ").rest()" : ")"});
}

}  // namespace penstock::inline v0_1
