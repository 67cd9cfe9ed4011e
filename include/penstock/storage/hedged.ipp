// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/hedged.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE detail::hedge_rules detail::rules_of(const hedged_options& options) {
  if (!(options.max_extra_requests >= 0 && options.max_extra_requests <= 1))
    throw error(errc::argument,
                "hedged starts from 0 to 1 second reads per read; max_extra_requests must be between them");
  constexpr std::chrono::microseconds none{0}, hour{3'600'000'000};
  if (options.min_delay < none || options.min_delay > hour)
    throw error(errc::argument,
                {"hedged waits from 0 us to an hour, not ", options.min_delay.count(), " us"});
  if (options.observations == 0)
    throw error(errc::argument,
                "hedged must have seen at least one read to know which are late; write "
                "{.observations = 1} or more");
  return {.max_extra_requests = options.max_extra_requests,
          .observations = options.observations,
          .min_delay = options.min_delay,
          .bytes = options.bytes};
}

}  // namespace penstock::inline v0_1
