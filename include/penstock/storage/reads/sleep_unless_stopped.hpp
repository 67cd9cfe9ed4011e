// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace penstock::inline v0_1::detail {

/// Waits so long. Throws errc::stopped as soon as the token asks for it.
inline void sleep_unless_stopped(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, time, [] { return false; });
  if (stop.stop_requested()) throw error(errc::stopped, "a wait was ended by the stop token");
}

}  // namespace penstock::inline v0_1::detail
