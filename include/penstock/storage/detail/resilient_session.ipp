// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/resilient_session.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE retry_rules retry_rules_of(const http_options& options) {
  retry_rules made = rules_of(options.retries);
  made.stop = options.stop;
  return made;
}
PENSTOCK_INLINE retry_policy retry_policy_of(const http_options& options) {
  retry_policy made{retry_rules_of(options), std::nullopt};
  if (options.throttle.max_in_flight != 0) {
    const retry_rules limit = rules_of(options.throttle);
    made.retries.max_in_flight = std::min(limit.max_in_flight, options.connections);
    made.retries.max_pause = limit.max_pause;
  }
  const hedge_rules second = rules_of(options.hedges);
  if (second.max_extra_requests > 0) made.hedges = second;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
