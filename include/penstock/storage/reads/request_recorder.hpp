// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/duration_counts.hpp>
#include <penstock/storage/storage_counters.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock::inline v0_1::detail {

/// Counts requests to a store as they end; any number of threads may add.
class request_recorder {
 public:
  using clock = std::chrono::steady_clock;
  using outcome = std::atomic<std::uint64_t> request_recorder::*;

  void ended(clock::time_point sent, clock::time_point now, outcome how) noexcept {
    const std::chrono::nanoseconds took = now - sent;
    durations_.add(took.count() > 0 ? static_cast<std::uint64_t>(took.count()) : 0);
    (this->*how).fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] store_requests read() const noexcept {
    const auto of = [this](outcome one) { return (this->*one).load(std::memory_order_relaxed); };
    return {of(&request_recorder::answered), of(&request_recorder::failed), of(&request_recorder::cancelled),
            durations_.read()};
  }

  std::atomic<std::uint64_t> answered{0}, failed{0}, cancelled{0};

 private:
  duration_recorder durations_;
};

}  // namespace penstock::inline v0_1::detail
