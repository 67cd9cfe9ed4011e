// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/engine/fetched_session.hpp>

#include <penstock/core/message.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::size_t fetched_session::max_in_flight() const {
  return calls_->max_in_flight == nullptr ? 0 : calls_->max_in_flight(self_);
}

PENSTOCK_INLINE storage_counters fetched_session::counters() const {
  return calls_->counters == nullptr ? storage_counters() : calls_->counters(self_);
}

PENSTOCK_INLINE std::optional<open_read> fetched_session::oldest_read() const {
  return calls_->oldest_read == nullptr ? std::nullopt : calls_->oldest_read(self_);
}

PENSTOCK_INLINE std::string fetched_session::name(object_id id) const {
  return calls_->name == nullptr ? detail::text({"object ", id}) : calls_->name(self_, id);
}

}  // namespace penstock::inline v0_1
