// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/http_options.hpp>

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE void detail::check(const http_options& options) {
  if (options.connections == 0 || options.connections > 4096)
    throw error(errc::argument,
                {"http keeps from 1 to 4096 connections, not ", options.connections, "; 64 is the default"});
  constexpr std::chrono::milliseconds least{1}, day{86'400'000};
  for (const auto time :
       {options.connect_time, options.first_byte_time, options.progress_time, options.idle_time})
    if (time < least || time > day)
      throw error(errc::argument, {"http waits from 1 ms to a day, not ", time.count(), " ms"});
}

}  // namespace penstock::inline v0_1
