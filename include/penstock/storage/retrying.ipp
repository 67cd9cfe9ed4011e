// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/retrying.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE detail::retry_rules detail::rules_of(const retrying_options& options) {
  constexpr std::chrono::milliseconds none{0}, day{86'400'000};
  for (const auto time : {options.initial_backoff, options.max_backoff, options.max_retry_after,
                          options.max_time, options.max_unreachable_time}) {
    if (time < none || time > day)
      throw error(errc::argument, {"retrying waits from 0 ms to a day, not ", time.count(), " ms"});
  }
  if (options.attempts == 0)
    throw error(errc::argument,
                "retrying makes at least one attempt; write {.attempts = 1} to try nothing again");
  return {.attempts = options.attempts,
          .initial_backoff = options.initial_backoff,
          .max_backoff = options.max_backoff,
          .max_retry_after = options.max_retry_after,
          .max_time = options.max_time,
          .max_unreachable_time = options.max_unreachable_time,
          .budget = options.budget,
          .seed = options.seed};
}

}  // namespace penstock::inline v0_1
