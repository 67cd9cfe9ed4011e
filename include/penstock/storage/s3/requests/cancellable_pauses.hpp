// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace penstock::inline v0_1::detail::s3 {

/// Waits that end when they are cancelled.
class cancellable_pauses {
 public:
  [[nodiscard]] std::uint64_t round() {
    const std::scoped_lock lock(mutex_);
    return round_;
  }
  /// Throws errc::stopped if it was cancelled since `round`.
  void wait(std::chrono::nanoseconds time, std::uint64_t round) {
    std::unique_lock lock(mutex_);
    if (cancelled_.wait_for(lock, time, [&] { return round_ != round; }))
      throw error(errc::stopped, "the read was cancelled");
  }
  void cancel() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      ++round_;
    }
    cancelled_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable cancelled_;
  std::uint64_t round_ = 0;
};

}  // namespace penstock::inline v0_1::detail::s3
