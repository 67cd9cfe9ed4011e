// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/detail/patient.hpp>

#include <algorithm>

namespace penstock::inline v0_1 {
namespace detail {

PENSTOCK_INLINE patience patience_of(const retrying_options& retries, const throttled_options& throttle,
                                     const hedged_options& hedges, std::size_t most_at_once) {
  patience made{rules_of(retries), std::nullopt};
  if (throttle.at_once != 0) {
    const relay_rules limit = rules_of(throttle);
    made.relays.at_once = std::min(limit.at_once, most_at_once);
    made.relays.longest_pause = limit.longest_pause;
  }
  const hedge_rules second = rules_of(hedges);
  if (second.share > 0) made.hedges = second;
  return made;
}

}  // namespace detail
}  // namespace penstock::inline v0_1
