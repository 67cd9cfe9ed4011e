// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/patient.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE relay_rules retry_rules_of(const http_options& options) {
  relay_rules made = rules_of(options.retries);
  made.stop = options.stop;
  return made;
}
PENSTOCK_INLINE patience patience_of(const http_options& options) {
  patience made{retry_rules_of(options), std::nullopt};
  if (options.throttle.at_once != 0) {
    const relay_rules limit = rules_of(options.throttle);
    made.relays.at_once = std::min(limit.at_once, options.connections);
    made.relays.longest_pause = limit.longest_pause;
  }
  const hedge_rules second = rules_of(options.hedges);
  if (second.share > 0) made.hedges = second;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
