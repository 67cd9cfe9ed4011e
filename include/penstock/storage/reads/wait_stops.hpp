// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <atomic>
#include <cstdint>

namespace penstock::inline v0_1::detail::blocks {

/// Ends the waits of a session's reads: of those that have begun, or of all from then on.
/// Threads: any number.
class wait_stops {
 public:
  /// What a wait remembers of its beginning, so that only later calls of `stop` end it.
  using moment = std::uint64_t;

  [[nodiscard]] moment now() const noexcept { return calls_.load(std::memory_order_relaxed) & ~ended; }
  [[nodiscard]] bool since(moment begun) const noexcept {
    return calls_.load(std::memory_order_relaxed) != begun;
  }
  void stop() noexcept { calls_.fetch_add(1, std::memory_order_relaxed); }
  /// Waits that begin later end, too.
  void stop_for_good() noexcept { calls_.fetch_or(ended, std::memory_order_relaxed); }

 private:
  // No moment has it, so that each of them differs.
  static constexpr std::uint64_t ended = std::uint64_t{1} << 63;

  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace penstock::inline v0_1::detail::blocks
