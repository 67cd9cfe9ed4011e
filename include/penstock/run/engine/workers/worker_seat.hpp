// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <atomic>
#include <cstdint>

namespace penstock::inline v0_1 {

/// A worker's scratch and counts, which its thread leaves to the consumer while the consumer would only wait
/// for a processor.
///
/// One word says whose they are. The consumer asks for the seat and goes on; the worker leaves it between two
/// grains, when it holds no ticket, and sleeps until the consumer returns it or all are stopped. A consumer
/// that sleeps must not be asking: the worker that leaves might be the last one. What either of them wrote
/// there happens before the other one's turn. After `stop` the worker's thread must end without using them:
/// the consumer may still do so.
/// Threads: as each function says. Cost for the worker: one relaxed load per grain.
class worker_seat {
 public:
  /// The consumer asks for the seat.
  void ask() noexcept {
    if (word_.load(std::memory_order_relaxed) == own) change(own, asked);
  }
  /// Whether the consumer has it: asked for, and left by the worker.
  [[nodiscard]] bool is_lent() const noexcept { return word_.load(std::memory_order_acquire) == lent; }
  /// The consumer asks no longer. False if it has the seat by now.
  bool withdraw() noexcept { return !is_lent() && (change(asked, own) || !is_lent()); }
  /// The consumer returns the seat, or asks for it no longer.
  void give_back() noexcept {
    if (word_.load(std::memory_order_relaxed) != own) take_back();
  }

  /// The worker leaves the seat if it was asked for, and waits until it is returned.
  void offer() noexcept {
    if (word_.load(std::memory_order_relaxed) != own) [[unlikely]]
      lend();
  }
  /// Ends the worker's wait, now and later. Any thread.
  void stop() noexcept;

 private:
  static constexpr std::uint32_t own = 0, asked = 1, lent = 2, stopped = 3;

  bool change(std::uint32_t before, std::uint32_t after) noexcept {
    return word_.compare_exchange_strong(before, after);
  }
  void take_back() noexcept;
  void lend() noexcept;

  std::atomic<std::uint32_t> word_{own};
};

inline void worker_seat::take_back() noexcept {
  if (!change(asked, own) && change(lent, own)) word_.notify_one();
}

inline void worker_seat::lend() noexcept {
  change(asked, lent);
  while (word_.load() == lent) {
    word_.wait(lent);
    change(asked, lent);  // returned, and asked for again
  }
}

inline void worker_seat::stop() noexcept {
  word_.store(stopped);
  word_.notify_one();
}

}  // namespace penstock::inline v0_1
