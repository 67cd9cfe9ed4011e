// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/throttled.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE detail::relay_rules detail::rules_of(const throttled_options& options) {
  constexpr std::chrono::milliseconds none{0}, day{86'400'000};
  if (options.longest_asked < none || options.longest_asked > day)
    throw error(errc::argument,
                {"throttled waits from 0 ms to a day, not ", options.longest_asked.count(), " ms"});
  if (options.at_once == 0)
    throw error(errc::argument, "throttled lets at least one read through; write {.at_once = 1} or more");
  return {.at_once = options.at_once, .longest_pause = options.longest_asked};
}

}  // namespace penstock::inline v0_1
