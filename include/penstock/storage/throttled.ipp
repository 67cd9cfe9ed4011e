// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/throttled.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE detail::retry_rules detail::rules_of(const throttled_options& options) {
  constexpr std::chrono::milliseconds none{0}, day{86'400'000};
  if (options.max_retry_after < none || options.max_retry_after > day)
    throw error(errc::argument,
                {"throttled waits from 0 ms to a day, not ", options.max_retry_after.count(), " ms"});
  if (options.max_in_flight == 0)
    throw error(errc::argument,
                "throttled lets at least one read through; write {.max_in_flight = 1} or more");
  return {.max_in_flight = options.max_in_flight, .max_pause = options.max_retry_after};
}

}  // namespace penstock::inline v0_1
